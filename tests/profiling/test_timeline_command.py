"""Profiles from the command line, on a CPU: fresh and recorded timelines, and one line for each that is missing."""

import gzip
import json
from argparse import Namespace
from unittest.mock import Mock

import pytest
from samples import version, write_pair

import benchmark
from common.cli import profile_commands
from common.pairs.pair import discover
from common.profiling import counters, recorder
from common.record import files, profile_file

SLOW = "return 2 * x.exp().log() + w_shift"
TUPLES = {"check": {"n": 7, "at": (0, 1)}, "default": {"n": 64, "at": (2, 3)}}  # lists, in a file
NO_GPU = version(extra='DEVICE = "cuda"')


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """A folder of pairs, and a place where profiles are kept."""
    monkeypatch.setattr(files, "RECORDED", tmp_path / "recorded")
    write_pair(tmp_path / "ch9", "double", version(SLOW, sizes=TUPLES), version(sizes=TUPLES))
    return tmp_path / "ch9"


@pytest.fixture
def timeline(pairs, capsys):
    """timeline(pattern, status=0, option=value): (stdout, stderr) of a call that ends with this status."""

    def call(pattern, status=0, **options):
        defaults = {"size": "default", "device": "cpu", "record": False, "recorded": False, "counters": False}
        chosen = discover(pairs, pattern.partition(":")[0])
        assert profile_commands.timeline_pairs(Namespace(timeline=pattern, **defaults | options), chosen) == status
        return capsys.readouterr()

    return call


@pytest.mark.rest
def test_versions_are_profiled_in_one_child_and_what_cannot_run_is_named(pairs, timeline, monkeypatch):
    write_pair(pairs, "gpu", NO_GPU, NO_GPU)
    write_pair(pairs, "dies", version(), version("raise ValueError('no')"))
    call = Mock(wraps=recorder.worker.call)
    monkeypatch.setattr(recorder.worker, "call", call)
    out, err = timeline("[dg]*", status=1)
    recorded = [asked.args[1] for asked in call.call_args_list if asked.args[0] is recorder.record_versions]
    assert [[version.label for version in able] for able in recorded] == [["baseline", "optimized"]] * 2
    for part in ("aten::exp", "double baseline, default", "double optimized, default", "dies optimized"):
        assert part in out
    assert err.splitlines() == [
        "benchmark.py: dies baseline: ValueError: no (baseline_dies.py:8)",
        "benchmark.py: gpu baseline: skipped: needs an NVIDIA GPU",
        "benchmark.py: gpu optimized: skipped: needs an NVIDIA GPU",
    ]


@pytest.mark.rest
def test_a_recorded_timeline_is_drawn_until_the_pair_changes(pairs, timeline, tmp_path):
    fresh = timeline("double:optimized", record=True).out
    (path,) = tmp_path.glob("recorded/*/profiles/ch9/double.optimized.json.gz")
    assert "aten::exp" in {event["name"] for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
    drawn = timeline("double:optimized", recorded=True).out
    assert drawn == fresh.partition("recorded in")[0]
    missing = timeline("double", recorded=True, status=1).err
    assert missing.startswith("benchmark.py: no profile of double baseline is recorded: ")
    write_pair(pairs, "double", version(sizes=TUPLES), version(sizes=TUPLES))
    assert "double optimized is stale" in timeline("double:optimized", recorded=True, status=1).err
    path.write_bytes(path.read_bytes()[:-9])
    assert "damaged, or not packed by gzip" in timeline("double:optimized", recorded=True, status=1).err


@pytest.mark.rest
def test_a_profile_is_written_after_a_run(pairs, tmp_path, capsys):
    write_pair(pairs, "gpu", NO_GPU, NO_GPU)
    traces = profile_commands.profile_pairs(discover(pairs), tmp_path / "out", "cpu")
    assert [trace.name for trace in traces] == ["baseline_double.json.gz", "optimized_double.json.gz"]
    names = [{event.name for event in profile_file.load(trace).traceEvents} for trace in traces]
    assert [{"aten::exp", "aten::mul"} & each for each in names] == [{"aten::mul"}, {"aten::exp", "aten::mul"}]
    out = capsys.readouterr().out
    assert "double baseline, default" in out and "baseline_gpu: skipped: needs an NVIDIA GPU" in out


LIBRARIES = """
LIBRARY_NEEDS = {"library_absent": "no_such_package"}

def library(x, w_shift):
    return x.add(x)

def library_absent(x, w_shift):
    import no_such_package

    return no_such_package.double(x)
"""


@pytest.mark.rest
def test_a_library_is_profiled_and_recorded_under_its_name(pairs, timeline, tmp_path):
    write_pair(pairs, "double", version(sizes=TUPLES), version(sizes=TUPLES) + LIBRARIES)
    out = timeline("double:library", record=True).out
    assert "double library, default" in out and "aten::add" in out
    assert [path.name for path in tmp_path.glob("recorded/*/profiles/ch9/*")] == ["double.library.json.gz"]
    assert timeline("double:library", recorded=True).out == out.partition("recorded in")[0]
    said = "benchmark.py: double library_absent: skipped: needs the package no_such_package\n"
    assert timeline("double:library_absent", status=1).err == said


@pytest.mark.rest
def test_a_pair_of_several_processes_says_what_to_do(timeline, pairs, monkeypatch):
    monkeypatch.setattr("common.pairs.pair.Pair.ranks", 2)
    said = (
        "benchmark.py: double optimized: skipped: runs in several processes: start it with torchrun under a profiler\n"
    )
    assert timeline("double:optimized", status=1).err == said


@pytest.mark.rest
def test_a_machine_that_refuses_counters_says_so_and_the_timeline_is_kept(pairs, timeline, tmp_path, monkeypatch):
    monkeypatch.setattr(counters.shutil, "which", lambda name: None)
    out, err = timeline("double:baseline", record=True, counters=True, status=1)
    assert "no counters: Nsight Compute is not installed" in err and err.count("\n") == 1
    (path,) = tmp_path.glob("recorded/*/profiles/ch9/double.baseline.json.gz")
    assert profile_file.load(path).no_counters in err and "no counters" in out


# Counters

NAMES = '"ID","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread","dram__bytes_read.sum"'
HEAD = f'{NAMES}\n"","","ns","",""\n'


def test_a_kernel_has_a_row_with_the_counters_of_its_longest_launch():
    lines = '"0","k","1,234.5","32","n/a"', '"1","k2","10","40","5e3"', '"2","k","9","32","7"'
    assert counters.rows_of(f"==PROF== Connected\n{HEAD}" + "\n".join(lines)) == [
        {"kernel": "k", "time_ns": 1234.5, "launches": 2},
        {"kernel": "k2", "time_ns": 10.0, "dram_read_bytes": 5000.0, "launches": 1},
    ]


@pytest.fixture
def ncu(monkeypatch, tmp_path):
    """A stand-in for Nsight Compute that refuses counters whose base names are given, as it does; its calls."""
    calls = tmp_path / "calls"

    def install(*unknown):
        tests = "".join(
            f"[[ $* == *{name}.* ]] && echo '==ERROR== Failed to find metric regex:^{name}\\.(sum|avg)$' && bad=1\n"
            for name in unknown
        )
        table = HEAD + '"0","k","5","32","7"'
        (tmp_path / "ncu").write_text(
            f"#!/bin/bash\necho >> {calls}\n{tests}[ $bad ] && exit 9\ncat << E\n{table}\nE\n"
        )
        (tmp_path / "ncu").chmod(0o700)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return calls

    return install


def test_counters_that_ncu_refuses_are_left_out_and_named(pairs, ncu):
    (pair,) = discover(pairs)
    calls = ncu("dram__bytes_write", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared")
    rows, missing = counters.read_counters(pair, pair.baseline, {})
    assert rows == [{"kernel": "k", "time_ns": 5.0, "dram_read_bytes": 7.0, "launches": 1}]
    assert {"dram_write_bytes", "bank_conflicts", "stall_memory"} <= set(missing.partition(": ")[2].split(", "))
    assert "time_ns" not in missing and len(calls.read_text()) == 2
    ncu("")  # refuses for a reason of its own
    with pytest.raises(counters.CannotCount, match="status 9: Failed to find metric"):
        counters.read_counters(pair, pair.baseline, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "ncu saw no kernel"),
        (HEAD, "ncu saw no kernel"),
        ('"A"\n"0"\n', "is not understood"),
        (f'{HEAD}"0","k","x","1","2"\n', "is not understood"),
    ],
)
def test_an_unknown_table_of_counters_is_refused(text, said):
    with pytest.raises(counters.CannotCount, match=said):
        counters.rows_of(text)


# Requests


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--recorded"], "--recorded does not go with a measurement of pairs"),
        (["--chapter", "1", "--counters"], "--counters does not go with a measurement of pairs"),
        (["--timeline", "coalescing", "--recorded", "--device", "cpu"], "excludes --record, --device and --counters"),
        (["--timeline", "coalescing:nosuch", "--recorded"], "coalescing has no version 'nosuch'"),
        (["--timeline", ":fused"], "--timeline ':fused' names no pair"),
        (["--timeline", "nosuch"], "no pair of any chapter matches 'nosuch'"),
        (["--timeline", "coalescing", "--json", "x"], "--json does not go with --timeline"),
        (["--timeline", "coalescing", "--size", "huge"], "no selected pair has a size 'huge'"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_in_one_line(words, said, capsys):
    try:
        status = benchmark.main(words)
    except SystemExit as stop:
        status = stop.code
    err = capsys.readouterr().err
    assert status == 2 and said in err


def test_profiles_of_other_folders_are_not_recorded(pairs, capsys):
    assert benchmark.main(["--timeline", "double", "--path", str(pairs), "--record"]) == 2
    assert "--record keeps profiles of the course's chapters" in capsys.readouterr().err
