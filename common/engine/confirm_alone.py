"""The pair's result after each candidate has run alone.

Ratios come from samples taken together; the runs alone confirm them. A version whose answer is wrong alone is
disqualified. A conclusion that holds only beside others is unsure: effects of other versions (memory, replaced
functions, work during another's turn) may have caused it.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from common.engine.job import Alone, Errand, Job, finding_of
from common.isolation.worker import ChildFailed
from common.record import recompute
from common.record.decision import is_contradicted
from common.record.outcome import Cause, Finding, Outcome, Verdict, Where
from common.record.result import CONTROL, PairResult, Row

MOST_SAMPLES, LEAST_SAMPLES, SAMPLES_S = 10, 3, 0.5  # of a run alone
BATCHES = 5  # samples suffice if each has many calls
REPEATS = 4  # of runs that contradict the conclusion
BUSY = 0.3  # cores that are busy between calls: above this, a note says so
Call = Callable[..., Alone]  # (job, errand, a function that answers questions) -> the process's result


class Told:
    """What the runs of a pair are told: the same seeds, each right before its use, and which answer is kept."""

    def __init__(self, samples: int) -> None:
        self._seeds = [secrets.randbits(63) for _ in range(samples + 2)]  # of drawing, and of each sample
        self._kept = 2 + secrets.randbelow(samples)  # the number of seeds sent by then
        self.found: dict[str, Alone] = {}

    def to_one(self) -> Callable[[str], Any]:
        """A function that answers the questions of one run."""
        told: list[int] = []

        def answer(question: str) -> Any:
            if question == "seed":
                told.append(self._seeds[len(told)])
                return told[-1]
            if question == "keep?":
                return len(told) == 1 + self._kept
            return self._seeds[: 1 + self._kept], self.found

        return answer


def settled(job: Job, result: PairResult, call: Call) -> PairResult:
    """The result including the runs alone. `call` makes one run in its own process."""
    labels = [label for label in result.arms if label not in (CONTROL, "baseline")]
    if not labels:
        return result
    slowest_s = max(arm.median_s * arm.calls for arm in result.arms.values())
    most = BATCHES if any(arm.calls > 1 for arm in result.arms.values()) else MOST_SAMPLES
    samples = min(most, max(LEAST_SAMPLES, int(SAMPLES_S / slowest_s)))
    told, runs = Told(samples), dict[str, list[Alone]]()

    def run(label: str, folder: str = "") -> None:
        arm = result.arms[label]
        errand = Errand(label, samples, arm.calls, arm.host_s or 0.0, folder)
        try:
            found = call(_with_files(job, label), errand, on_question=told.to_one())
        except ChildFailed as death:
            found = Alone([], Outcome(Verdict.CRASHED, finding_of(death)))
        runs.setdefault(label, []).append(found)

    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        for label in [*labels, "baseline"]:
            told.found = {label: each for label, (each,) in runs.items() if not each.outcome}
            run(label, folder)
    (base,) = runs["baseline"]
    for label, problem in (base.wrong or {}).items():
        outcome = Outcome(Verdict.INVALID, problem.with_facts(where=Where.ALONE.value))
        runs[label] = [replace(each, outcome=outcome) for each in runs[label]]
    result = _without(result, {label: found.outcome for label, (found,) in runs.items() if found.outcome})
    for _ in range(REPEATS):
        confirmed = _confirmed(result, runs)
        doubted = [row for row in confirmed.rows if is_contradicted(Outcome(row.verdict, row.reason))]
        for label in {label for row in doubted for label in (row.variant, row.versus)}:
            run(label)
    return _confirmed(result, runs)


def _with_files(job: Job, label: str) -> Job:
    """The job of a run alone: with the baseline's file, and the file of the version or library call."""
    function = label.replace("/", "_", 1)
    owner = next(each for each in job.pair.versions if each.label == label or function in each.functions)
    return replace(job, labels=[*dict.fromkeys(["baseline", owner.label])])


def _without(result: PairResult, out: dict[str, Outcome]) -> PairResult:
    """The result without arms that were wrong alone; without a baseline, no rows remain valid."""
    gone = set(result.arms) if "baseline" in out else set(out)
    rows = []
    for row in result.rows:
        guilty = next((label for label in ("baseline", row.variant) if label in out), "")
        if guilty and row.versus == "baseline":
            whose = {"whose": "baseline"} if guilty == "baseline" else {}
            why = _alone(out[guilty], **whose)
            rows.append(Row(row.variant, "baseline", out[guilty].verdict, why, precision=row.precision))
        elif not gone & {row.variant, row.versus}:
            libraries = {label: value for label, value in row.vs_library.items() if label not in gone}
            notes = [_alone(out[label], whose=label) for label in row.vs_library if label in out]
            rows.append(replace(row, vs_library=libraries, notes=[*row.notes, *filter(None, notes)]))
        elif row.variant not in result.arms:
            rows.append(row)  # disqualified before
    arms = {label: arm for label, arm in result.arms.items() if label not in gone}
    return replace(result, rows=rows, arms=arms, noise_floor=result.noise_floor if arms else None)


def _seconds(label: str, runs: dict[str, list[Alone]]) -> list[list[float]]:
    return [each.seconds for each in runs.get(label, []) if each.seconds]


def _alone(outcome: Outcome, **facts: str) -> Finding | None:
    """What a run alone found. `whose`: of another candidate than the row's variant."""
    return outcome.reason and outcome.reason.with_facts(alone=True, **facts)


def _confirmed(result: PairResult, runs: dict[str, list[Alone]]) -> PairResult:
    """The result with the runs alone: verdicts that hold together and alone, notes on busy cores."""
    arms = {label: replace(arm, alone=_seconds(label, runs)) for label, arm in result.arms.items()}
    rows = []
    for row in result.rows:
        if row.variant in arms and (busy := runs[row.variant][0].busy) > BUSY:
            row = replace(row, notes=[*row.notes, Finding(Cause.CORES_BUSY_BETWEEN, {"cores": busy})])
        if row.ratio is not None:
            now = recompute.row(arms, row.variant, row.versus, result.noise_floor or 0.0, row.precision)
            row = replace(row, verdict=now.verdict, reason=now.reason)
        rows.append(row)
    return replace(result, arms=arms, rows=rows)
