"""Exact counts beside Nsight Compute's counters: its table read, differences classed, and what is said without it."""

from dataclasses import replace

import pytest

pytest.importorskip("triton")  # not on macOS

from common.profiling.counters import CannotCount, launches_in
from tests.samples import refused
from tools import counter_check, counter_truth
from tools.__main__ import main
from tools.counted_launches import (
    BEYOND_L2,
    HALF,
    MODELS,
    PAIRS,
    PER_SM,
    RESIDENT,
    ChosenVersion,
    choose_versions,
    count_version,
    machine_of,
)
from tools.counter_page import errors, markdown, pages
from tools.counter_truth import GRID, L2_READ, METRICS, READ, THREADS, WAYS, WRITTEN, ComparedKernel, Truth

LOADS, STORES, RED = WAYS["load"][0], WAYS["store"][0], WAYS["atomic"][1]
DEVICE = {"kind": "cuda", "name": "NVIDIA H200", "capability": [9, 0], "sms": 132, "cache_bytes": 60 << 20}
COUNTED = {
    "launches": 1, "programs": 8, "load": 1000, "store": 500, "read bytes": 32_000, "written bytes": 16_000,
    f"read, {PER_SM}": 32_000, f"moved, {PER_SM}": 48_000, f"read, {RESIDENT}": 48_000, f"moved, {RESIDENT}": 64_000,
    f"read, {HALF}": 64_000, f"moved, {HALF}": 80_000,
}  # fmt: skip
COUNTERS = {
    LOADS: 1000.0, STORES: 500.0, GRID: 8.0, THREADS: 128.0, READ: 32_000.0, WRITTEN: 0.0, L2_READ: 500.0,
    **dict.fromkeys(WAYS["atomic"] + WAYS["TMA load"] + WAYS["TMA store"], 0.0),
}  # fmt: skip
TABLE = f"""==PROF== Connected to process 7
==PROF== Profiling "square_kernel": 0%....100% - 3 passes
"ID","Kernel Name","{GRID}","{THREADS}","{LOADS}","{READ}","{WRITTEN}"
"","","","","sector","byte","byte"
"0","square_kernel","256","128","262,144","1,048,576.00","n/a"
"1","void at::native::fill(float)","1","128","0","0",""
"2","square_kernel","256","128","262,144","1,048,576.00","n/a"
"""


def kernel(counters=None, **counts):
    of = {name: value for name, value in {**COUNTERS, **(counters or {})}.items() if value is not None}
    return ComparedKernel("ch1/planted", "optimized", {"n": 8}, "planted_kernel", {**COUNTED, **counts}, of)


def comparison(*kernels, **fields):
    environment = {"device": DEVICE, "versions": {"torch": "2.11.0", "ncu": "2025.3.1.0"}, "date": "2026-11-24"}
    return Truth(counter_truth.SCHEMA, environment, list(kernels), [], {}, **fields)


def test_a_table_is_read_whatever_is_printed_around_it_and_launches_are_added_up():
    square = "square_kernel", {GRID: 256.0, THREADS: 128.0, LOADS: 262_144.0, READ: 1_048_576.0}  # n/a is no counter
    fill = "void at::native::fill(float)", {GRID: 1.0, THREADS: 128.0, LOADS: 0.0, READ: 0.0}
    assert launches_in(TABLE, METRICS) == [square, fill, square]
    launched = [(0, "square_kernel"), (0, "square_kernel")]
    found = counter_check.sum_by_kernel(launched, launches_in(TABLE, METRICS))  # added up, without torch's
    assert found == {(0, "square_kernel"): {GRID: 512, THREADS: 128, LOADS: 524_288, READ: 2_097_152}}


def test_other_launches_than_were_made_and_a_table_of_another_kind_are_refused():
    with refused("Nsight Compute profiled", kind=CannotCount):
        counter_check.sum_by_kernel([(0, "square_kernel"), (1, "other_kernel")], launches_in(TABLE, METRICS))
    with refused("ncu's table is not understood", kind=CannotCount):
        launches_in(TABLE.replace('"262,144"', '"many"'), METRICS)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (kernel(), counter_truth.AGREES),
        (kernel({LOADS: 1015.0}), counter_truth.AGREES),  # 1 % of all
        (kernel({LOADS: 1016.0}), counter_truth.RELOADED),
        (kernel({LOADS: 8001.0}), counter_truth.UNEXPLAINED),  # a sector has 8 words, the program 4 warps
        (kernel({LOADS: 16_000.0, THREADS: 512.0}), counter_truth.RELOADED),  # by each of 16 warps
        (kernel({STORES: 1000.0}), counter_truth.PARTIAL),
        (kernel({RED: 100.0}), counter_truth.UNEXPLAINED),
        (kernel({RED: 100.0}, atomic=100), counter_truth.AGREES),
        (kernel({GRID: 9.0}), counter_truth.ANOTHER),
        (kernel({WAYS["TMA load"][0]: None}, **{"TMA load": 1000}), counter_truth.TMA),
        (kernel({WAYS["TMA load"][0]: 1000.0}, **{"TMA load": 1000}), counter_truth.AGREES),
        (kernel({WAYS["TMA load"][0]: 500.0}, **{"TMA load": 1000}), counter_truth.UNEXPLAINED),
    ],
)
def test_what_a_difference_is_said_to_be(found, said):
    assert found.agreement == said


def test_the_models_error_is_told_apart_by_what_the_l2_holds():
    large = kernel(**{"read bytes": 100 << 20, f"read, {PER_SM}": 16_000})
    assert kernel().model_off(PER_SM) == 0
    assert kernel().model_off(RESIDENT) == 0.5
    assert kernel({READ: None}).model_off(PER_SM) is None
    assert errors(comparison(kernel(), kernel({READ: 0.0}), large)) == [
        "data of a kernel fits into the L2 (1), a program an SM: 0.0% off, at most +0.0%",
        "data of a kernel fits into the L2 (1), all resident: 50.0% off, at most +50.0%",
        "data of a kernel fits into the L2 (1), all resident, half the L2: 100.0% off, at most +100.0%",
        "data of a kernel is larger than the L2 (1), a program an SM: 50.0% off, at most -50.0%",
        "data of a kernel is larger than the L2 (1), all resident: 50.0% off, at most +50.0%",
        "data of a kernel is larger than the L2 (1), all resident, half the L2: 100.0% off, at most +100.0%",
    ]


def test_a_record_is_read_as_it_was_written_and_becomes_a_page(tmp_path):
    found = replace(comparison(kernel(), kernel({LOADS: 2000.0, READ: None})), left_out={"ch9/x baseline": "no GPU"})
    path = counter_truth.keep(found, tmp_path)
    assert (path.parent.name, counter_truth.FORMAT.load(path)) == ("nvidia_h200", found)
    assert pages(folder=tmp_path) == {path.with_suffix(".md"): markdown(path, found)}
    page = markdown(path, found)
    assert "1 of 2 kernels agree within 1%, 1 of them to the last sector" in page
    assert "| ch1/planted | optimized | planted_kernel | n=8 | 1,500 | 2,500 | +66.67% | reloaded |" in page
    memory = "| n=8 | 0.500 | 31.25 KiB | +0.0% | +50.0% | +100.0% | 0 B | 15.62 KiB |"
    assert f"| ch1/planted | optimized | planted_kernel {memory}" in page
    assert "left out: ch9/x baseline: no GPU" in page


def test_without_counters_one_line_says_why(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(counter_check, "has_gpu", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "ncu").write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path)
    assert main(["counter_check", "--record"]) == 2
    assert capsys.readouterr() == (
        "",
        "counter_check: no counters: ncu ended with status 1: ERR_NVGPUCTRPERM - no permission\n",
    )
    assert not [*tmp_path.glob("*/traffic.json")]


def test_what_is_chosen_is_there():
    every = choose_versions()
    names = {f"{chapter}/{name}" for chapter, names in PAIRS.items() for name in names.split()}
    assert {each.pair for each in every} == names
    assert {(each.pair, each.version) for each in every if each.is_beyond_l2} == {*BEYOND_L2}
    assert {each.pair for each in choose_versions("softmax*")} == {"ch3/softmax", "ch3/softmax_backward"}


def test_a_launch_is_counted_as_that_gpu_would_make_it():
    size = {"m": 1024, "n": 1024, "k": 64}  # 32 tiles
    tma = next(each for each in choose_versions("matmul") if each.version == "optimized/persistent")
    machine = machine_of({**DEVICE, "sms": 5})
    found = count_version(machine, replace(tma, size=size), {"matmul_kernel": 1})["matmul_kernel"]
    assert found["programs"] == 5
    assert found["TMA load"] == 32 * (128 + 256) * 64 * 2 // 32
    assert found["TMA store"] == 1024 * 1024 * 2 // 32
    assert found["read bytes"] == found[f"read, {PER_SM}"] == 2 * 1024 * 64 * 2
    assert found["written bytes"] == 1024 * 1024 * 2
    assert "load" not in found


def test_the_models_of_an_l2_differ_by_what_runs_at_once_and_by_its_size():
    # reads each row three times
    softmax = next(each for each in choose_versions("softmax") if each.version == "baseline")
    size = {"rows": 8, "columns": 2048}  # 8 KiB of float32 a row
    for l2_bytes, passes in ((80 << 10, [1, 1, 3]), (40 << 10, [1, 3, 3])):
        machine = machine_of({**DEVICE, "sms": 1, "cache_bytes": l2_bytes})
        found = count_version(machine, replace(softmax, size=size), {"softmax_kernel": 8})["softmax_kernel"]
        assert [found[f"read, {model}"] // (64 << 10) for model in MODELS] == passes


def test_versions_that_cannot_be_counted_are_left_out_with_their_reason():
    plan = [ChosenVersion("ch1/planted", version, "", {"n": 8}) for version in ("baseline", "optimized")]
    of_both = {(number, "planted_kernel"): COUNTERS for number in range(2)}
    found, left = counter_check.compare_counts(plan, of_both, ["no Gluon", {"planted_kernel": COUNTED}])
    assert (found, left) == ([kernel()], {"ch1/planted baseline": "no Gluon"})
    found, left = counter_check.compare_counts(plan[1:], {(0, "other_kernel"): COUNTERS}, [{"planted_kernel": COUNTED}])
    assert (found, left) == ([], {"ch1/planted optimized": "only the GPU launched other_kernel"})
