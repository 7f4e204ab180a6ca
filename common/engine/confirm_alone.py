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

from common.engine.job import AloneRequest, AloneResult, Job, finding_of
from common.isolation.worker import ChildFailed
from common.record import recompute
from common.record.decision import is_contradicted
from common.record.outcome import Cause, Finding, Outcome, Verdict, Where
from common.record.result import CONTROL, PairResult, Row

MOST_SAMPLES, LEAST_SAMPLES, ALONE_S = 10, 3, 0.5  # of a run alone
BATCHES = 5  # samples suffice if each has many calls
REPEATS, FAST_REPEATS = 4, 1  # of runs that contradict the conclusion; with --fast, in a group, which starts slowly
BUSY_CORES = 0.3  # cores that are busy between calls: above this, a note says so
RunAlone = Callable[..., AloneResult]  # (job, request, a function that answers questions) -> the process's result


class SeedSchedule:
    """The seeds that all runs of a pair are sent, each right before its use, and which answer is kept."""

    def __init__(self, samples: int) -> None:
        self._seeds = [secrets.randbits(63) for _ in range(samples + 2)]  # of drawing, and of each sample
        self._kept_sample = 2 + secrets.randbelow(samples)  # the number of seeds sent by then
        self.results: dict[str, AloneResult] = {}

    def responder(self) -> Callable[[str], Any]:
        """A function that answers the questions of one run."""
        sent_seeds: list[int] = []

        def answer(question: str) -> Any:
            if question == "seed":
                sent_seeds.append(self._seeds[len(sent_seeds)])
                return sent_seeds[-1]
            if question == "keep?":
                return len(sent_seeds) == 1 + self._kept_sample
            return self._seeds[: 1 + self._kept_sample], self.results

        return answer


def confirm_result(job: Job, result: PairResult, call: RunAlone) -> PairResult:
    """The result including the runs alone. `call` makes one run in its own process."""
    labels = [label for label in result.arms if label not in (CONTROL, "baseline")]
    if not labels:
        return result
    slowest_s = max(arm.median_s * arm.calls for arm in result.arms.values())
    most_samples = BATCHES if any(arm.calls > 1 for arm in result.arms.values()) else MOST_SAMPLES
    samples = min(most_samples, max(LEAST_SAMPLES, int(ALONE_S / slowest_s)))
    schedule, runs = SeedSchedule(samples), dict[str, list[AloneResult]]()

    def run(label: str, folder: str = "") -> None:
        arm = result.arms[label]
        request = AloneRequest(label, samples, arm.calls, arm.host_s or 0.0, folder, result.whole_draws)
        try:
            run_result = call(_job_alone(job, label), request, on_question=schedule.responder())
        except ChildFailed as failure:
            run_result = AloneResult([], Outcome(Verdict.CRASHED, finding_of(failure)))
        runs.setdefault(label, []).append(run_result)

    with TemporaryDirectory(prefix="speed-of-light-") as folder:
        for label in [*labels, "baseline"]:
            schedule.results = {label: run_result for label, (run_result,) in runs.items() if not run_result.outcome}
            run(label, folder)
    (base,) = runs["baseline"]
    for label, problem in (base.wrong_answers or {}).items():
        outcome = Outcome(Verdict.INVALID, problem.with_facts(where=Where.ALONE.value))
        runs[label] = [replace(run_result, outcome=outcome) for run_result in runs[label]]
    result = _drop_candidates(
        result, {label: run_result.outcome for label, (run_result,) in runs.items() if run_result.outcome}
    )
    for _ in range(FAST_REPEATS if job.blocks and job.ranks > 1 else REPEATS):
        confirmed = _with_runs(result, runs)
        doubtful = [row for row in confirmed.rows if is_contradicted(Outcome(row.verdict, row.reason))]
        for label in {label for row in doubtful for label in (row.variant, row.versus)}:
            run(label)
    return _with_runs(result, runs)


def _job_alone(job: Job, label: str) -> Job:
    """The job of a run alone: with the baseline's file, and the file of the version or library call."""
    function = label.replace("/", "_", 1)
    owner = next(version for version in job.pair.versions if version.label == label or function in version.functions)
    return replace(job, labels=[*dict.fromkeys(["baseline", owner.label])])


def _drop_candidates(result: PairResult, outcomes: dict[str, Outcome]) -> PairResult:
    """The result without candidates that were wrong alone; without a baseline, no rows remain valid."""
    dropped = set(result.arms) if "baseline" in outcomes else set(outcomes)
    rows = []
    for row in result.rows:
        culprit = next((label for label in ("baseline", row.variant) if label in outcomes), "")
        if culprit and row.versus == "baseline":
            whose = {"whose": "baseline"} if culprit == "baseline" else {}
            reason = _alone_reason(outcomes[culprit], **whose)
            rows.append(Row(row.variant, "baseline", outcomes[culprit].verdict, reason, precision=row.precision))
        elif not dropped & {row.variant, row.versus}:
            libraries = {label: value for label, value in row.vs_library.items() if label not in dropped}
            notes = [_alone_reason(outcomes[label], whose=label) for label in row.vs_library if label in outcomes]
            rows.append(replace(row, vs_library=libraries, notes=[*row.notes, *filter(None, notes)]))
        elif row.variant not in result.arms:
            rows.append(row)  # disqualified before
    arms = {label: arm for label, arm in result.arms.items() if label not in dropped}
    return replace(result, rows=rows, arms=arms, noise_floor=result.noise_floor if arms else None)


def _seconds(label: str, runs: dict[str, list[AloneResult]]) -> list[list[float]]:
    return [run_result.seconds for run_result in runs.get(label, []) if run_result.seconds]


def _alone_reason(outcome: Outcome, **facts: str) -> Finding | None:
    """What a run alone found. `whose`: of another candidate than the row's variant."""
    return outcome.reason and outcome.reason.with_facts(alone=True, **facts)


def _with_runs(result: PairResult, runs: dict[str, list[AloneResult]]) -> PairResult:
    """The result with the runs alone: verdicts that hold together and alone, notes on busy cores."""
    arms = {label: replace(arm, alone=_seconds(label, runs)) for label, arm in result.arms.items()}
    rows = []
    for row in result.rows:
        if row.variant in arms and (busy := runs[row.variant][0].busy_cores) > BUSY_CORES:
            row = replace(row, notes=[*row.notes, Finding(Cause.CORES_BUSY_BETWEEN, {"cores": busy})])
        if row.ratio is not None:
            confirmed = recompute.row(arms, row.variant, row.versus, result.noise_floor or 0.0, row.precision)
            row = replace(row, verdict=confirmed.verdict, reason=confirmed.reason)
        rows.append(row)
    return replace(result, arms=arms, rows=rows)
