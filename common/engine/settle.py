"""Together for the ratio, alone for the truth: what is left of a pair's result once each candidate has run alone.

A version whose answer is right only beside others is out. A conclusion that holds only beside others is unsure: what
others leave behind (memory, replaced functions, work on another's turn) may have made it.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from common.engine.job import Alone, Errand, Job
from common.isolation.process import Death
from common.record import stats
from common.record.result import CONTROL, PairResult, Row

MOST_SAMPLES, LEAST_SAMPLES, SAMPLES_S = 10, 3, 0.5  # of a run alone
BATCHES = 5  # samples are enough where each is of many calls
REPEATS = 4  # of runs whose times contradict what was found together
BUSY = 0.3  # cores, by work that nothing has asked for: worth a note
Call = Callable[..., Alone]  # a job, an errand and what answers questions -> what its process has found


class Told:
    """What the runs of a pair are told: the same seeds, each right before it is needed, and what is kept."""

    def __init__(self, samples: int) -> None:
        self._seeds = [secrets.randbits(63) for _ in range(samples + 2)]  # of drawing, and of each sample
        self._kept = 2 + secrets.randbelow(samples)  # so many seeds are told by then
        self.found: dict[str, Alone] = {}

    def to_one(self) -> Callable[[str], Any]:
        """Answers the questions of one run."""
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
    """The result with what the runs alone have shown. `call` runs one in a process of its own."""
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
        except Death as death:
            found = Alone([], "died", str(death))
        runs.setdefault(label, []).append(found)

    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        for label in [*labels, "baseline"]:
            told.found = {label: each for label, (each,) in runs.items() if not each.verdict}
            run(label, folder)
    (base,) = runs["baseline"]
    for label, problem in (base.wrong or {}).items():
        runs[label] = [replace(each, verdict="invalid", reason=f"wrong answer: {problem}") for each in runs[label]]
    result = _without(result, {label: found for label, (found,) in runs.items() if found.verdict})
    for _ in range(REPEATS):
        doubted = {label for row in result.rows if _contradiction(row, runs) for label in (row.variant, row.versus)}
        for label in doubted:
            run(label)
    arms = {label: replace(arm, alone=_seconds(label, runs)) for label, arm in result.arms.items()}
    rows = [_settled(row, runs) if row.variant in arms else row for row in result.rows]
    return replace(result, arms=arms, rows=rows)


def _with_files(job: Job, label: str) -> Job:
    """The job of a run alone: the baseline's file, and that of the version or of the library call."""
    function = label.replace("/", "_", 1)
    owner = next(each for each in job.pair.versions if each.label == label or function in each.functions)
    return replace(job, labels=[*dict.fromkeys(["baseline", owner.label])])


def _without(result: PairResult, out: dict[str, Alone]) -> PairResult:
    """The result without those that were not right alone; without a baseline, without all."""
    gone = set(result.arms) if "baseline" in out else set(out)
    rows = []
    for row in result.rows:
        guilty = next((label for label in ("baseline", row.variant) if label in out), "")
        if guilty and row.versus == "baseline":
            whose = "the baseline: " if guilty == "baseline" else ""
            why = f"{whose}alone: {out[guilty].reason}"
            rows.append(Row(row.variant, "baseline", out[guilty].verdict, why, precision=row.precision))
        elif not gone & {row.variant, row.versus}:
            libraries = {label: value for label, value in row.vs_library.items() if label not in gone}
            said = [f"{label}: alone: {out[label].reason}" for label in row.vs_library if label in out]
            rows.append(replace(row, vs_library=libraries, notes=[*row.notes, *said]))
        elif row.variant not in result.arms:
            rows.append(row)  # out before
    arms = {label: arm for label, arm in result.arms.items() if label not in gone}
    return replace(result, rows=rows, arms=arms, noise_floor=result.noise_floor if arms else None)


def _seconds(label: str, runs: dict[str, list[Alone]]) -> list[list[float]]:
    return [each.seconds for each in runs.get(label, []) if each.seconds]


def _contradiction(row: Row, runs: dict[str, list[Alone]]) -> str:
    """Both ratios in words, where no run alone bears out what the row says; else empty."""
    versus, mine = _seconds(row.versus, runs), _seconds(row.variant, runs)
    if row.ratio is None or stats.holds_alone(row.verdict, row.ratio, versus, mine):
        return ""
    return stats.contradiction(row.ratio, versus, mine)


def _settled(row: Row, runs: dict[str, list[Alone]]) -> Row:
    """With its verdict as it holds both ways, and what is said of a version's run alone."""
    busy, reason = runs[row.variant][0].busy, _contradiction(row, runs)
    if busy > BUSY:
        row = replace(row, notes=[*row.notes, f"keeps {busy:.1f} cores busy while nothing is asked of it"])
    return replace(row, verdict="unsure", reason=reason) if reason else row
