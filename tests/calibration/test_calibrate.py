"""A harness that measures wrongly fails the calibration, each fault its own check; figures follow from what is kept."""

import ast
import json
import math
import multiprocessing
import os
import re
import time
from dataclasses import replace
from functools import partial
from statistics import median

import psutil
import pytest
import torch
from samples import refused, wait_until

from common.engine import runner
from common.engine.runner import FAST_BLOCKS, has_failed, run_pairs
from common.machine.device import describe
from common.pairs.pair import discover
from common.pairs.pair import load as load_version
from common.pairs.source import source_hash
from common.record.files import RecordError
from common.record.outcome import Cause
from common.record.result import Record
from common.show import tables
from tools.__main__ import main
from tools.calibration import calibrate, calibration_page, known_times, trials
from tools.calibration.checks import FORMAT, contradiction, judge, own_cost
from tools.calibration.findings import (
    FILE,
    PAIRS,
    SCHEMA,
    Findings,
    KnownTimes,
    Run,
    Spin,
    VariantResult,
    keep,
    to_json,
)

# Planted data: 200 runs of a harness that is right, and of one with a fault

RUNS = 200
REPETITIONS = {"baseline": 100, "copy": 100, "plus_1": 101, "plus_5": 105}
FALSE_CALL = VariantResult("faster", 1.03, 1.025, 1.035)
CALIBRATED = {
    "copy": VariantResult("same", 1.0, 0.99, 1.01),
    "plus_1": VariantResult("same", 100 / 101, 0.985, 0.995),
    "plus_5": VariantResult("slower", 100 / 105, 0.945, 0.96),
}
MISSES = {  # the right verdict, but the truth is not in the interval
    "copy": VariantResult("same", 1.01, 1.005, 1.015),
    "plus_1": VariantResult("same", 1.0, 0.995, 1.005),
    "plus_5": VariantResult("slower", 0.94, 0.93, 0.95),
}
INVALID = VariantResult("invalid", None, None, None, "wrong answer")
UNSURE = VariantResult("unsure", 0.97, 0.95, 0.99)
REFUSED = VariantResult("too short", None, None, None, "below the timer's resolution")


def planted(times=0, version="copy", said=FALSE_CALL, runs=RUNS):
    """Runs of which the first few say something else of one version."""
    return [Run(i, 12, 0.005, {**CALIBRATED, version: said} if i < times else CALIBRATED) for i in range(runs)]


def spins(off=1.0, clock="CLOCK_MONOTONIC_RAW"):
    return [Spin(s, {clock: [s] * 5}, [s * factor] * 5) for s, factor in ((1e-3, off), (1e-2, 1.0), (1e-1, 1.0))]


def known(own=0.0, cold=18e-6, **off):
    """What `own` repetitions cost in vain, and reads of a cold L2 that take so long."""
    return KnownTimes(spins(**off), [1e-5 * (1 + own)] * 9, [1e-5 * (200 + own)] * 9, 200, [cold] * 5, [10e-6] * 5)


def sound(quiet=None, busy=None, kind="cuda", name="NVIDIA H200", date="2026-01-02T03:04:05+00:00", **changes):
    environment = {"device": {"kind": kind, "name": name}, "versions": {"torch": "2.11.0"}, "date": date}
    parts = {
        "environment": {**environment, "argv": [], "runs": RUNS, "took_s": 240, "neighbours": []},
        "source_hashes": {pair.name: source_hash(pair) for pair in discover(PAIRS)},
        "repetitions": REPETITIONS, "runs": {"quiet": quiet or planted(), "busy": busy or planted()},
        "nothing": [Run(0, 12, 0.005, {"optimized": REFUSED})] * 2, "copies": [0.97, 0.98, 0.99, 0.98],
        "known": known(), "checks": [],
    }  # fmt: skip
    found = Findings(SCHEMA, **{**parts, **changes})
    return replace(found, checks=judge(found))


def failing(found):
    return [(check.check, check.condition) for check in judge(found) if not check.passed]


def test_a_sound_harness_passes_every_check():
    found = sound()
    assert failing(found) == []
    assert contradiction(found) == ""
    assert [check.runs for check in found.checks] == [*[RUNS] * 8, 2, 9, 15, 5, 4]


EQUAL = "equal versions are called different"
HELD = [f"the interval holds the true {truth}" for truth in ("1.0000", "0.9901", "0.9524")]
WRONG = "a planted difference is called the wrong way"
COPY = "a copy reaches the measured limit"
HONEST = "an honest version is called invalid"
CONTRADICTS = "a run alone contradicts"
EMPTY = "an empty call gets no ratio"
OWN = "a call costs little besides its repetitions"
SPIN = "a spin is as long as by CLOCK_MONOTONIC_RAW"
READ = "a read with a cold L2 is slower than with a warm one"


DOUBTED = VariantResult("unsure", 1.05, 1.04, 1.06, Cause.CONTRADICTED_ALONE.value)


def alone(times=16, **of):
    """Runs with runs alone among them, of which so many hit on something."""
    return {"quiet": planted(), "alone": planted(times, **of), "busy": planted()}


GIVEN = ({"optimized": CALIBRATED["copy"]}, {"optimized": VariantResult("verified", None, None, None)}, {})
NOT_NOTHING = [[], *([Run(0, 12, 0.005, said)] * 2 for said in GIVEN)]


@pytest.mark.parametrize(
    ("faults", "found_by"),
    [
        ({"quiet": planted(16)}, [(EQUAL, "quiet"), (HELD[0], "quiet")]),  # 8 %
        ({"busy": planted(16)}, [(EQUAL, "busy")]),
        ({"quiet": planted(16, said=INVALID)}, [(EQUAL, "quiet"), (HELD[0], "quiet")]),
        ({"quiet": planted(20, "plus_5", UNSURE)}, [("a planted 5% is found", "quiet")]),  # 90 %
        *(({"quiet": planted(20, *miss)}, [(held, "quiet")]) for held, miss in zip(HELD, MISSES.items(), strict=True)),
        ({"quiet": planted(1, "plus_1")}, [(WRONG, "quiet")]),
        ({"busy": planted(1, "plus_1")}, [(WRONG, "busy")]),
        ({"busy": planted(1, "plus_5")}, [(WRONG, "busy")]),
        ({"known": known(own=2.1)}, [(OWN, "quiet")]),
        *(({"known": known(off=off)}, [(SPIN, "quiet")]) for off in (1.07, 0.93)),
        ({"known": known(off=1.07, clock="%globaltimer")}, [("a spin is as long as by %globaltimer", "quiet")]),
        ({"known": known(cold=11e-6)}, [(READ, "quiet")]),  # 1.1 times the warm read
        *(({"copies": found}, [(COPY, "quiet")]) for found in ([1.1] * 4, [0.85] * 4, [0.98, 0.98, 0.98, None], [])),
        ({"runs": alone(said=INVALID)}, [(EQUAL, "alone"), (HONEST, "alone")]),
        ({"runs": alone(said=DOUBTED)}, [(CONTRADICTS, "alone")]),
        *(({"nothing": runs}, [(EMPTY, "quiet")]) for runs in NOT_NOTHING),
    ],
)
def test_each_fault_is_found_by_its_own_check(faults, found_by):
    assert failing(sound(**faults)) == found_by


@pytest.mark.parametrize(
    "within",
    [
        {"quiet": planted(10)},  # 5 %
        {"quiet": planted(10, "plus_5", UNSURE)},  # 95 % found
        {"quiet": planted(14, "plus_1", MISSES["plus_1"])},  # 93 % held
        {"busy": planted(RUNS, "plus_5", UNSURE)},  # power is promised on a quiet machine only
        {"quiet": planted(RUNS, "plus_1", VariantResult("slower", 0.97, 0.96, 0.979)),
         "repetitions": {"baseline": 97, "copy": 97, "plus_1": 100, "plus_5": 102}},
        {"known": known(off=1.04)},
        {"known": known(own=1.9)},
        {"copies": [0.91] * 4},
    ],
)  # fmt: skip
def test_what_is_within_the_accepted_range_passes(within):
    assert [name for name, _ in failing(sound(**within)) if "interval" not in name] == []


def test_there_are_no_reads_on_a_cpu_and_nothing_follows_from_no_runs():
    on_cpu = sound(known=replace(known(), cold_s=[], warm_s=[]))
    assert READ not in [check.check for check in on_cpu.checks] and failing(on_cpu) == []
    assert len(failing(replace(on_cpu, runs={"quiet": [], "busy": []}))) == 8


def test_a_verdict_that_a_run_alone_contradicts_is_not_that_of_its_interval():
    assert contradiction(sound(runs=alone(said=DOUBTED))) == ""
    assert contradiction(sound(runs=alone(said=replace(DOUBTED, reason="")))).startswith("alone run 0, copy: unsure")


# The file


def test_what_is_kept_is_what_is_read(tmp_path):
    found = sound(planted(3), kind="cpu", name="Intel(R) Xeon(R) @ 2.50GHz")
    path = keep(found, tmp_path)
    assert path == tmp_path / "intel_r__xeon_r____2_50ghz" / "calibration.json"
    assert FORMAT.load(path) == found
    assert len(path.read_text().splitlines()) > 2 * RUNS  # a line a run, for whoever compares two versions


def say(run, version, **changes):
    return lambda data: data["runs"]["quiet"][run]["said"][version].update(changes)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (say(0, "copy", verdict="same"), r"quiet run 0, copy: same, but its interval says faster"),
        (say(0, "copy", ratio=1.0, low=0.99, high=1.01, verdict="same"), r"3 \(1.5%\), but .* give 2 \(1.0%\)"),
        (lambda data: data["copies"].append(1.2), r"a copy reaches"),
        (lambda data: data["repetitions"].update(plus_5=110), r"planted|interval"),
        (lambda data: data["checks"].pop(), r"not a calibration \(ValueError"),
        (lambda data: data["checks"][0].update(passed=False), EQUAL),
        (lambda data: data.pop("runs"), r"not a calibration \(.*`runs`"),
        (lambda data: data["known"].update(spins=3), r"not a calibration \(Expected `array`, got `int`"),
        (lambda data: data.update(schema=2), r"an older version .*: measure again, or `git checkout .* FILE`$"),
    ],
    ids=str.split("verdict ratio copies repetitions fewer_checks passed no_runs spins schema"),
)  # fmt: skip
def test_a_file_whose_figures_do_not_follow_is_refused_in_one_line(change, complaint, tmp_path):
    path = tmp_path / "calibration.json"
    data = json.loads(to_json(sound(planted(3))))
    change(data)
    path.write_text(json.dumps(data))
    with refused(complaint, f"{path}: ", RecordError):
        FORMAT.load(path)


def test_committed_calibrations_are_believed():
    for path, found in FORMAT.load_all(FILE):
        assert 0.95 ** found.environment["runs"] < 0.05, path  # if one in twenty were wrong, so many would show one


# The table in the README


def test_the_table_shows_every_check_with_device_date_and_versions(tmp_path):
    found = sound(planted(16))
    text = calibration_page.markdown([(keep(found, tmp_path), found)], found.source_hashes)
    for said in ("NVIDIA H200, 2026-01-02 (torch 2.11.0)", "(/recorded/nvidia_h200/calibration.json), in 4.0 minutes"):
        assert said in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert f"| {EQUAL} | quiet | 200 | 16 (8.0%) | at most 5% | **not passed** |" in rows
    assert f"| {READ} | quiet | 5 | 1.80x (18.0 us, 10.0 us) | above 1.2x | passed |" in rows
    assert f"| {EQUAL} | busy | 200 | 0 (0.0%) | at most 5% | passed |" in rows
    assert len(rows) == 2 + len(found.checks)


def test_pairs_that_have_changed_since_show_no_figure(tmp_path):
    found = sound()
    text = calibration_page.markdown([(keep(found, tmp_path), found)], {**found.source_hashes, "work": "changed"})
    assert "Stale" in text and "|" not in text
    assert calibration_page.markdown([], {}) == tables.NOTHING


# The pairs


def test_the_pairs_agree_with_their_references_at_every_check_size(monkeypatch):
    monkeypatch.setattr(runner, "survey_apart", lambda device, with_limits: (describe("cpu"), {}))
    record = run_pairs(discover(PAIRS), device="cpu", check_only=True)
    verdicts = {(pair.name, row.variant): row.verdict for pair in record.pairs for row in pair.rows}
    assert list(verdicts.values()) == ["verified"] * 5
    assert not has_failed(record)


def test_the_planted_truth_is_the_count_of_repetitions():
    (pair,) = discover(PAIRS, "work")
    assert trials.repetitions(pair) == REPETITIONS


@pytest.mark.parametrize("pair", discover(PAIRS), ids=lambda pair: pair.name)
def test_versions_differ_in_their_repetitions_only(pair):
    def code(path):
        tree = ast.parse(path.read_text())
        named = {node: node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)}
        return [ast.dump(node) for node in tree.body[1:] if named.get(node) not in ("REPETITIONS", "SIZES")]

    assert {str(code(each.path)) for each in pair.versions} == {str(code(pair.baseline.path))}


class Counted(torch.overrides.TorchFunctionMode):
    """How often torch.sin was called."""

    calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.calls += function is torch.sin
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("path", sorted(PAIRS.glob("*_work*.py")), ids=lambda path: path.stem)
def test_work_does_what_it_says_as_often_as_it_says(path):
    work, x = load_version(path), torch.tensor([math.pi / 6, -math.pi / 2])
    state = work.setup(torch.rand(2))
    with Counted() as counted:
        out = work.run(x, **state)
    assert counted.calls == work.REPETITIONS
    torch.testing.assert_close(state["once"], torch.tensor([0.5, -1.0]))
    torch.testing.assert_close(out, torch.tensor([math.sin(0.5), -math.sin(1.0)]))
    assert not set(map(torch.Tensor.data_ptr, state.values())) & {x.data_ptr()}


def test_nothing_is_nothing_and_a_copy_is_a_copy():
    x = torch.rand(1000)
    nothing, copy = (load_version(PAIRS / f"baseline_{name}.py") for name in ("nothing", "copy"))
    assert nothing.run(x) is x
    y = copy.setup(torch.zeros(1000))["y"]
    samples = copy.run(x, y)
    assert torch.equal(y, x) and torch.equal(samples, copy.reference(x))
    assert 200 < len(samples) <= 256
    assert copy.cost(x) == {"dram_bytes": 8000}


# What is measured, and under which conditions


def test_a_spin_lasts_until_its_clock_says_so():
    ticks = iter([100, 103, 107, 112, 999])
    assert known_times.spin(10, lambda: next(ticks)) == 12
    name, now_ns = known_times.other_clock()
    begin = time.perf_counter_ns()
    assert 2_000_000 <= known_times.spin(2_000_000, now_ns) < 1.05 * (time.perf_counter_ns() - begin), name


def job(device):
    return trials.job_of(discover(PAIRS, "work")[0], Record({"device": describe(device)}, {}, []), device)


@pytest.mark.alone
def test_spins_on_a_cpu_are_read_with_the_harness(monkeypatch):
    monkeypatch.setattr(known_times, "SPINS", {"cpu": {1e-3: 5, 5e-3: 3}})
    monkeypatch.setattr(known_times, "SAMPLES", 7)
    found = known_times.measure_known_times(job("cpu"), lambda stage, fraction: None)
    assert [(spin.nominal_s, len(spin.read_s)) for spin in found.spins] == [(1e-3, 5), (5e-3, 3)]
    for spin in found.spins:
        ((_, true_s),) = spin.true_s.items()
        assert min(true_s) >= spin.nominal_s
        assert all(got >= 0.99 * true for got, true in zip(spin.read_s, true_s, strict=True))
    assert len(found.one_s) == len(found.many_s) == 7
    assert 50 * median(found.one_s) < median(found.many_s) < 400 * median(found.one_s)
    assert found.cold_s == found.warm_s == []


@pytest.mark.gpu
@pytest.mark.alone
def test_known_times_on_a_gpu():
    found = trials.run_in_child(known_times.measure_known_times, job("cuda:0"))
    for spin in found.spins:
        assert list(spin.true_s) == ["its cycles at the SM clock", "%globaltimer"]
        assert all(math.isclose(true, spin.nominal_s, rel_tol=0.3) for true in spin.true_s["%globaltimer"])
        assert median(spin.read_s) > 0.95 * spin.nominal_s
    assert own_cost(found) < 10
    assert len(found.cold_s) == len(found.warm_s) == known_times.SAMPLES


def test_what_a_call_costs_besides_is_part_of_the_planted_truth():
    assert math.isclose(own_cost(known(own=1.5)), 1.5)
    names = [check.check for check in sound(known=known(own=100.0)).checks]
    assert "the interval holds the true 0.9756" in names  # 200 / 205, no longer 100 / 105


def test_all_cores_are_kept_busy_and_no_longer():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with trials.all_cores_busy() as hogs:
        assert len(hogs) == cores
        for hog in hogs:
            wait_until(lambda pid=hog.pid: psutil.Process(pid).cpu_times().user > 0.3, running=hog)
    assert not any(psutil.pid_exists(hog.pid) for hog in hogs)
    with pytest.raises(ZeroDivisionError), trials.all_cores_busy() as hogs:
        1 / len(hogs[cores:])
    assert not any(psutil.pid_exists(hog.pid) for hog in hogs)


def test_a_core_that_was_not_busy_all_the_time_fails_the_calibration(monkeypatch):
    monkeypatch.setattr(trials, "HOG", "pass")
    with pytest.raises(trials.TrialError, match="with status 0"), trials.all_cores_busy() as hogs:
        hogs[0].wait()


def keep_busy(pids):
    with trials.all_cores_busy() as hogs:
        pids.send([hog.pid for hog in hogs])
        time.sleep(60)


def test_cores_are_free_again_when_whoever_kept_them_busy_is_killed():
    pids, told = multiprocessing.Pipe(duplex=False)
    parent = multiprocessing.get_context("fork").Process(target=keep_busy, args=(told,))  # has all imports already
    parent.start()
    kept = [psutil.Process(pid) for pid in pids.recv()]
    parent.kill()
    parent.join()
    assert kept and psutil.wait_procs(kept, timeout=10)[1] == []


def test_a_measurement_that_cannot_be_made_is_one_line():
    with pytest.raises(trials.TrialError, match=r"^AttributeError: .*$"):
        trials.run_in_child(trials.measure_all, [None])


# From end to end


@pytest.mark.rest
@pytest.mark.alone
def test_a_whole_calibration(tmp_path, monkeypatch, capsys):
    """All that a calibration does, in one run of each kind: its shares say little, and its table is for the reader.

    What must hold however few they are, and however busy the machine: nothing is called the wrong way, an empty call
    gets no ratio, and every spin is as long as it is.
    """
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path)
    monkeypatch.setattr(trials, "BLOCKS", FAST_BLOCKS)
    monkeypatch.setattr(trials, "run_pairs", partial(run_pairs, fast=True))
    status = main(["calibrate", "--device", "cpu", "--runs", "1", "--record"])
    out = capsys.readouterr().out
    with capsys.disabled():
        print(f"\n{out}")
    ((path, found),) = FORMAT.load_all(FILE, tmp_path)
    assert [check for check in found.checks if check.check in (WRONG, EMPTY, SPIN) and not check.passed] == []
    assert status == (0 if all(check.passed for check in found.checks) else 1)
    assert f"recorded in {path}" in out
    assert all(f" {check.check} " in out for check in found.checks)
    passed = sum(check.passed for check in found.checks)
    assert re.search(rf"^{passed} of {len(found.checks)} checks passed$", out, re.MULTILINE)
    assert [[run.seed for run in runs] for runs in found.runs.values()] == [[0], [0], [0]]
    said = [said for runs in found.runs.values() for run in runs for said in run.said.values()]
    assert all(said.low <= said.ratio <= said.high for said in said)
    assert (len(found.copies), len(found.nothing)) == (2, 1)
    assert found.repetitions["plus_5"] == 105
    assert found.source_hashes == {pair.name: source_hash(pair) for pair in discover(PAIRS)}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--runs", "0"], "0: not a number of runs above 0"),
        (["--device", "abacus"], "abacus"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, complaint, capsys):
    assert main(["calibrate", *arguments]) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if " done" not in line]
    assert error.startswith("calibrate: ") and complaint in error


def test_a_measurement_that_dies_is_status_1(monkeypatch, capsys):
    def dies(*_):
        raise trials.TrialError("killed by SIGKILL")

    monkeypatch.setattr(calibrate, "calibrate", dies)
    assert main(["calibrate", "--device", "cpu"]) == 1
    assert capsys.readouterr().err == "calibrate: killed by SIGKILL\n"
