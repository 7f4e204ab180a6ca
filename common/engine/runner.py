"""Run pairs, each in its own process, which may fail; make the record of the run.

This process needs no torch, which takes seconds to import: its child processes have it.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from common.engine import rank_group
from common.engine.job import AloneRequest, AloneResult, Job, finding_of
from common.isolation import forkserver, interrupt, worker
from common.machine import background_load
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.pairs.interpreter import environment_on
from common.pairs.pair import Pair, sizes_of, skip_reason
from common.pairs.source import source_hash
from common.record.outcome import FAILED, Cause, Finding, Outcome, Verdict
from common.record.result import PairResult, Record, Row

FAST_BLOCKS = 6
Neighbours = Callable[[dict[str, str]], None]  # process -> what it does


def run_pairs(
    pairs: list[Pair],
    size: str = "default",
    device: str | None = None,
    fast: bool = False,
    check_only: bool = False,
    stressed: bool = True,
    on_progress: Callable[[Pair, str, str, float], None] = lambda pair, size, stage, fraction: None,
    on_record: Callable[[Record], None] = lambda record: None,
    on_neighbours: Neighbours = lambda load: None,
) -> Record:
    """Measure pairs one after the other. A bad pair never raises. Ctrl-C returns the results so far, as `interrupted`.

    Without `stressed` the stress draws are left out, which take most of a check's time in Triton's interpreter.
    `on_record` gets the record so far after each pair. `on_neighbours` gets the other users of the machine before and
    after each pair. Raises DeviceError, and KeyboardInterrupt before the first pair.
    """
    with interrupt.hold_signals():
        record, jobs = _make_jobs(pairs, size, device or default_device(), fast, check_only)
        jobs = [replace(job, stressed=stressed) for job in jobs]
        verified: dict[Path, tuple[str, ...]] = {}  # by baseline
        untimed_results: dict[Path, PairResult] = {}  # results without times, equal at every size
        try:
            for job in jobs:
                report, path = partial(on_progress, job.pair, job.size), job.pair.baseline.path
                report("start", 0.0)
                if path in untimed_results:
                    result = replace(untimed_results[path], size=job.size, sizes=job.pair.sizes[job.size], spent_s={})
                else:
                    result = _run_pair(replace(job, verified=verified.get(path, ())), check_only, report, on_neighbours)
                if {row.verdict for row in result.rows} == {Verdict.VERIFIED} and not result.arms:
                    untimed_results[path] = result
                verified[path] = verified.get(path) or tuple(result.arms)  # empty unless all answers were right
                record = replace(record, pairs=[*record.pairs, result])
                on_record(record)
        except KeyboardInterrupt:
            record = replace(record, environment={**record.environment, "interrupted": True})
    on_gpu = record.environment["device"]["kind"] == "cuda"
    return _with_interpreted(record, pairs, on_progress) if check_only and on_gpu else record


def _with_interpreted(record: Record, pairs: list[Pair], on_progress: Callable[..., None]) -> Record:
    """A GPU's record, with the failures that only the interpreter sees: races, masked lanes, large offsets."""
    kernels = [pair for pair in pairs if any("triton" in version.imports for version in pair.versions)]
    interpreted = run_pairs(kernels, device="cpu", check_only=True, stressed=False, on_progress=on_progress)
    failed = {
        (result.name, row.variant): row
        for pair, result in zip(kernels, interpreted.pairs, strict=False)  # fewer if interrupted
        for row in result.rows
        if _is_seen_only_there(pair, row)
    }
    results = [
        replace(result, rows=[failed.get((result.name, row.variant), row) for row in result.rows])
        for result in record.pairs
    ]
    interrupted = record.environment["interrupted"] or interpreted.environment["interrupted"]
    return replace(record, pairs=results, environment={**record.environment, "interrupted": interrupted})


def _is_seen_only_there(pair: Pair, row: Row) -> bool:
    """Not what the GPU has judged itself: the interpreter's products of bfloat16 are wrong, and it has no SMs."""
    if row.verdict != Verdict.INVALID or row.reason is None:
        return False
    facts = row.reason.facts
    return row.reason.cause == Cause.OUT_OF_BOUNDS or "filled" in facts or facts.get("size") not in pair.check_sizes


def _make_jobs(pairs: list[Pair], size: str, device: str, fast: bool, check_only: bool) -> tuple[Record, list[Job]]:
    """An empty record of this machine, and the jobs."""
    device = "cpu" if device.startswith("cpu:") else device  # a pair compares with "cpu"
    forkserver.prefer("cuda" if device.startswith("cuda") else "torch")
    begin = time.monotonic()
    info, limits = survey_apart(device, not check_only)
    limits = limits if check_only else rank_group.link_limits(pairs, info, limits)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    argv = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]  # no folder of this machine
    environment: dict[str, Any] = {"device": dict(info), "versions": versions(), "platform": sys.platform, "date": date}
    environment |= {"argv": argv, "fast": fast, "survey_s": time.monotonic() - begin, "interrupted": False}
    pair_sizes = [(pair, name) for pair in pairs for name in sizes_of(pair, size, info["kind"] == "cpu")]
    blocks = FAST_BLOCKS if fast else None
    jobs = [Job(pair, name, device, info, limits, [], [], blocks, seed) for seed, (pair, name) in enumerate(pair_sizes)]
    return Record(environment, limits, []), jobs


def _run_pair(job: Job, check_only: bool, on_progress: worker.Report, on_neighbours: Neighbours) -> PairResult:
    """Measure one pair in its process. Versions that cannot run here are skipped; without the baseline all are."""
    job = rank_group.place_job(job)
    on_cpu = job.info["kind"] == "cpu"
    reasons = _skip_reasons(job)
    labels = [label for label, reason in reasons.items() if not reason]
    if "baseline" not in labels or len(labels) == 1:
        missing = reasons.pop("baseline")
        return _untimed_result(job, {label: _skip_outcome(reason or missing) for label, reason in reasons.items()})
    interpreted = _interpreted_labels(job)
    timed = [] if check_only else _timed_labels(job, labels)
    result = _measure_in_child(replace(job, labels=labels, timed=timed), on_progress, on_neighbours)
    note = Finding(Cause.INTERPRETED)
    if job.ranks > 1 and on_cpu and not check_only and not timed:
        interpreted, note = {"baseline"}, Finding(Cause.GLOO_ONLY, {"ranks": job.ranks})
    rows = [
        replace(row, reason=note)
        if row.verdict == Verdict.VERIFIED and interpreted & {row.variant, "baseline"}
        else row
        for row in result.rows
    ]
    skipped = {label: _skip_outcome(reason) for label, reason in reasons.items() if reason}
    rows += [Row(label, "baseline", outcome.verdict, outcome.reason) for label, outcome in skipped.items()]
    return replace(result, rows=rows)


def _skip_outcome(text: str) -> Outcome:
    return Outcome(Verdict.SKIPPED, Finding(Cause.NEEDS, {"text": text}))


def _skip_reasons(job: Job) -> dict[str, str]:
    """Version -> why it cannot run on the job's device, or an empty text."""
    left_out = dict.fromkeys(job.pair.lessons_left_out(job.size), f"a lesson: only `tuned` is made for {job.size}")
    reasons = {version.label: skip_reason(version, job.info, job.info["gpus"]) for version in job.pair.versions}
    return {label: reason or left_out.get(label, "") for label, reason in reasons.items()}


def _interpreted_labels(job: Job) -> set[str]:
    return {version.label for version in job.pair.versions if job.info["kind"] == "cpu" and "triton" in version.imports}


def _timed_labels(job: Job, labels: list[str]) -> list[str]:
    interpreted = _interpreted_labels(job)
    return [label for label in labels if label not in interpreted] if rank_group.is_timed(job) else []


def can_time(pair: Pair, size: str, info: dict[str, Any]) -> bool:
    """Whether a pair's baseline and a variant can be timed on a machine (see common.machine.device.describe)."""
    job = rank_group.place_job(Job(pair, size, "", info, {}, [], []))
    timed = _timed_labels(job, [label for label, reason in _skip_reasons(job).items() if not reason])
    return "baseline" in timed and len(timed) > 1


def _measure_in_child(job: Job, on_progress: worker.Report, on_neighbours: Neighbours) -> PairResult:
    """The result from the pair's process, its duration, and, if it was timed, the other users of the machine."""
    from common.engine import confirm_alone  # imports NumPy, which --list does not need

    begin, report_times = time.monotonic(), list[float]()

    def report(stage: str, fraction: float) -> None:
        report_times.append(time.monotonic())
        on_progress(stage, fraction)

    variables = environment_on(job.info["kind"])
    call = partial(worker.call, _child_main, environment=variables, on_progress=report)
    with background_load.watch(job.info.get("uuid"), on_neighbours, len(job.timed) > 1) as other_load:
        try:
            result: PairResult = call(job, None)
            alone_begin = time.monotonic()
            result = confirm_alone.confirm_result(job, result, call)
            result = replace(result, spent_s={**result.spent_s, "alone": time.monotonic() - alone_begin})
        except worker.ChildFailed as failure:
            crashed = Outcome(Verdict.CRASHED, finding_of(failure))
            result = _untimed_result(job, {label: crashed for label in job.labels if label != "baseline"})
    start_s = {"start": report_times[0] - begin} if report_times else {}
    spent_s = start_s | result.spent_s | {"total": time.monotonic() - begin}
    return replace(result, spent_s=spent_s, neighbours=[f"{name} {action}" for name, action in other_load.items()])


def _child_main(job: Job, request: AloneRequest | None, parent: worker.ParentPipe) -> PairResult | AloneResult:
    """In the child process: measure the pair, or one of its candidates alone."""
    from common.engine.measure import measure_pair
    from common.engine.run_alone import run_alone
    from common.engine.stage import DoesNotFit
    from common.pairs.syntax import ContractError

    if job.ranks > 1:
        from common.isolation.rank_launcher import launch

        return launch(rank_group.run_rank, job.ranks, parent, job, request)
    if request:
        return run_alone(job, request, parent)
    try:
        return measure_pair(job, parent)
    except (DoesNotFit, ContractError) as error:
        fits = isinstance(error, ContractError)
        verdict, cause = (Verdict.INVALID, Cause.BREAKS_CONTRACT) if fits else (Verdict.SKIPPED, Cause.NO_MEMORY)
        outcome = Outcome(verdict, Finding(cause, {"text": str(error)}))
        return _untimed_result(job, {label: outcome for label in job.labels if label != "baseline"})


def _untimed_result(job: Job, outcomes: dict[str, Outcome]) -> PairResult:
    pair = job.pair
    rows = [Row(label, "baseline", outcome.verdict, outcome.reason) for label, outcome in outcomes.items()]
    return PairResult(pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows)


def has_failed(record: Record) -> bool:
    """Whether a pair is invalid or has crashed."""
    return any(row.verdict in FAILED for pair in record.pairs for row in pair.rows)
