"""Liars that live on company: told by a run of each alone, and by nothing else."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from samples import because, reason_of, version, write_pair

from common import stats
from common.engine import confirm_alone, untimed_checks
from common.engine.job import AloneResult, Job
from common.pairs.pair import discover
from common.record.decision import decide, is_contradicted
from common.record.outcome import Outcome, Verdict
from common.record.result import Arm, PairResult, Row
from common.show import words
from liars.case import X, shows
from liars.child import measure_quickly, measured

SIZES = {"check": {"n": 127}, "default": {"n": 1 << 14}}
SLOW = "y = x\nfor _ in range(4):\n    y = torch.sin(y)\nreturn y"
OWN = SLOW.replace("torch.sin", "sin")
SLOWED = """
    import sys, time
    sin = torch.sin
    def slowed(run):
        def slow(x):
            time.sleep(2e-3)
            return run(x)
        return slow
"""
BRAKES = {
    # Any module is one that somebody may patch: the baseline's own, which is found by its name
    "a function of the other": f"""{SLOWED}
    def brake():
        for name, module in list(sys.modules.items()):
            if "baseline_pair" in name and not hasattr(module, "is_slow"):
                module.is_slow, module.work = True, slowed(module.work)
    """,
    "a function of torch": f"""{SLOWED}
    def brake():
        torch.sin = slowed(sin)
    """,
    "a profiler left on": f"""{SLOWED}
    def profiler(frame, event, argument):
        if frame.f_code.co_name == "work" and event == "call":
            time.sleep(2e-3)
    def brake():
        sys.setprofile(profiler)
    """,
    "what it has set at its import": f"""{SLOWED}
    torch.sin = slowed(sin)
    def brake():
        pass
    """,
}
BASELINE = f"def work(x):\n{''.join(f'    {line}{chr(10)}' for line in SLOW.splitlines())}"

SETTLED = confirm_alone.confirm_result
SAMPLE = "a function of the other"  # what every run shows; the other ways are left to `make test-all`


@pytest.fixture
def measure(machine, tmp_path, monkeypatch):
    """(run, what stands before it) -> the row of such a version beside a baseline of four sines."""

    def row_of(run, extra, settled=SETTLED):
        baseline = version("return work(x)", "x", X, BASELINE, SIZES)
        write_pair(tmp_path, "pair", version(run, "x", X, extra, SIZES), baseline)
        ((row,),) = (pair.rows for pair in measured(discover(tmp_path), monkeypatch, measure_quickly, settled).pairs)
        return row

    return row_of


def unsettled(job, result, call):
    return result


@pytest.mark.parametrize(
    ("how", "settled", "verdict"),
    [
        (SAMPLE, unsettled, "faster"), (SAMPLE, SETTLED, "unsure"),
        *(pytest.param(how, SETTLED, "unsure", marks=pytest.mark.rest) for how in BRAKES if how != SAMPLE),
    ],
)  # fmt: skip
def test_a_gain_that_comes_of_slowing_the_other_is_none(how, settled, verdict, measure):
    for _ in range(3):
        row = measure(f"brake()\n{OWN}", BRAKES[how], settled)
        if "quieter machine" not in reason_of(row):  # which was too noisy to show anything
            break
    assert row.verdict == verdict, row
    assert settled is unsettled or reason_of(row).startswith("beside the others "), row
    assert settled is unsettled or ", alone " in reason_of(row)


def test_its_twin_slows_itself_alone(measure):
    row = measure(OWN, BRAKES["a function of the other"])
    assert row.verdict in ("same", "unsure", "faster", "slower"), row
    assert "alone" not in reason_of(row)


STOPPED = """
    import time
    sin, sleep = torch.sin, time.sleep
    time.perf_counter = time.process_time = time.sleep = torch.cuda.synchronize = lambda *seconds: 0.0
"""


@shows(3)
def test_who_stops_the_clock_fools_himself(measure):
    row = measure(f"sleep(2e-3)\n{OWN}", STOPPED)
    assert (row.verdict, reason_of(row)) == ("slower", ""), row


def result_of(verdict, ratio):
    """A pair whose baseline takes a second, beside the others and alone."""
    row = Row("optimized", "baseline", Verdict(verdict), None, ratio, (ratio, ratio))
    spread = (0.5, 0.5, 1.0, 1.0, 2.0, 2.0) if verdict == "unsure" else [1.0] * 6
    both = {"baseline": 1.0, "optimized": 1.0 / ratio, "control": 1.0}
    arms = {label: Arm(seconds, None, None, None, 0.0, [[seconds]] * 6) for label, seconds in both.items()}
    arms["optimized"] = replace(arms["optimized"], seconds=[[both["optimized"] * factor] for factor in spread])
    return PairResult("ch1", "double", "default", {}, "", [row], arms=arms, noise_floor=0.0)


RIGHT = AloneResult([1.0], wrong_answers={})


@pytest.fixture
def settle_with(tmp_path):
    """(result, what the runs of the version find, and those of the baseline) -> the row, the labels that are left."""
    write_pair(tmp_path, "double", version("return x + x + w_shift"))
    (pair,) = discover(tmp_path)

    def settled(result, mine, base=(RIGHT,), **fields):
        left = {"optimized": list(mine), "baseline": list(base)}

        def call(job, request, on_question):
            runs = left[request.label]
            return runs.pop(0) if len(runs) > 1 else runs[0]

        job = Job(pair, "default", "cpu", {}, {}, ["baseline", "optimized"], [], **fields)
        found = confirm_alone.confirm_result(job, result, call)
        return found.rows[0], sorted(found.arms)

    return settled


KILLED = Outcome(Verdict.CRASHED, because("killed"))
ALL, NONE = ["baseline", "control", "optimized"], []


@pytest.mark.parametrize(
    ("verdict", "ratio", "alone", "said"),
    [
        ("faster", 40.0, 1.0, "unsure"),
        ("faster", 40.0, 7.0, "faster"),
        ("faster", 1.5, 1.21, "faster"),
        ("faster", 1.5, 1.1, "unsure"),
        ("slower", 0.5, 1.0, "unsure"),
        ("slower", 0.5, 0.7, "slower"),
        ("same", 1.0, 1.2, "same"),
        ("same", 1.0, 1.3, "unsure"),
        ("unsure", 1.1, 40.0, "unsure"),
    ],
)
def test_a_conclusion_holds_both_ways_or_is_unsure(verdict, ratio, alone, said, settle_with):
    row, left = settle_with(result_of(verdict, ratio), [AloneResult([1.0 / alone])])
    assert (row.verdict, left) == (said, ALL)
    doubted = verdict != said
    assert (reason_of(row) == f"beside the others {ratio:.3g}x, alone {alone:.3g}x") is doubted


def test_one_of_five_runs_that_agrees_is_enough(settle_with):
    once = [AloneResult([1.0])] * confirm_alone.REPEATS + [AloneResult([0.5])]
    assert settle_with(result_of("faster", 2.0), once)[0].verdict == "faster"
    never = [AloneResult([1.0])] * (confirm_alone.REPEATS + 1) + [AloneResult([0.5])]
    assert settle_with(result_of("faster", 2.0), never)[0].verdict == "unsure"


@pytest.mark.parametrize(("ranks", "said"), [(1, "faster"), (2, "unsure")])
def test_with_fast_a_group_is_started_once_more_and_no_oftener(ranks, said, settle_with):
    third = [AloneResult([1.0])] * (confirm_alone.FAST_REPEATS + 1) + [AloneResult([0.5])]
    assert settle_with(result_of("faster", 2.0), third, blocks=3, ranks=ranks)[0].verdict == said


@pytest.mark.parametrize(
    ("mine", "base", "said", "left"),
    [
        (AloneResult([], KILLED), RIGHT, ("crashed", "alone: killed"), ["baseline", "control"]),
        (
            AloneResult([0.5]), AloneResult([1.0], wrong_answers={"optimized": because("zeros")}),
            ("invalid", "alone: wrong answer: zeros"),
            ["baseline", "control"],
        ),
        (AloneResult([0.5]), AloneResult([1.0], KILLED), ("crashed", "the baseline: alone: killed"), NONE),
    ],
)  # fmt: skip
def test_who_is_not_right_alone_is_out(mine, base, said, left, settle_with):
    row, labels = settle_with(result_of("faster", 2.0), [mine], [base])
    assert ((row.verdict, reason_of(row)), labels, row.ratio) == (said, left, None)


def test_what_is_kept_is_known_only_after_it_was_taken():
    told = confirm_alone.SeedSchedule(5)
    first, second = told.responder(), told.responder()
    runs = [[(one("seed"), one("keep?")) for _ in range(7)] for one in (first, second)]
    assert runs[0] == runs[1]  # the same in all runs of a pair
    kept = [i for i, (_, is_kept) in enumerate(runs[0]) if is_kept]
    assert len(kept) == 1 and kept[0] >= 2  # neither of drawing nor of the sample that is not counted
    seeds, _ = first("what was kept?")
    assert seeds == [seed for seed, _ in runs[0][: kept[0] + 1]]
    assert len({tuple(confirm_alone.SeedSchedule(5)._seeds) for _ in range(3)}) == 3


@pytest.mark.parametrize(("cores", "found"), [(0.0, 0.0), (0.2, 0.0), (1.5, 1.5)])
def test_cores_that_work_when_nothing_is_asked_are_seen(cores, found, monkeypatch):
    slept = [0.0]
    clock = SimpleNamespace(sleep=lambda s: slept.append(slept[-1] + s), process_time=lambda: cores * slept[-1])
    monkeypatch.setattr(untimed_checks, "time", clock)
    monkeypatch.setattr(untimed_checks, "now", lambda: slept[-1])
    assert untimed_checks.cores_when_idle() == pytest.approx(found)
    assert len(slept) == (3 if not found else 5)  # a pool of threads that spins for a while is looked at twice


def test_a_record_says_why_a_conclusion_is_unsure():
    found = decide(stats.Estimate(40.0, 39.0, 41.0), 6, 0.0, [[1.0], [2.0]], [[1.0], [1.0]])
    assert is_contradicted(found) and words.text(found.reason) == "beside the others 40x, alone 2x"
    assert stats.holds_alone("faster", 40.0, [], [])
