"""Run pairs: each in its own process, whatever becomes of it; and put together the record of the run."""

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from common import process
from common.contract import OneLine
from common.device import clocks_now, default_device, describe, use_device, versions
from common.limits import measure_limits
from common.measure import measure
from common.pair import Pair, source_hash, why_not
from common.result import SCHEMA, PairResult, Record, Row
from common.session import DoesNotFit, Job

FAST_BLOCKS = 6
Progress = Callable[[Pair, str, str, float], None]


class DeviceError(OneLine):
    """The device that was asked for cannot be used."""


def sizes_of(pair: Pair, wanted: str, on_cpu: bool) -> list[str]:
    """A pair's sizes by name: `small` takes `small/*` too, `all` all but checks; on a CPU `default` may be `cpu`."""
    timed = [size for size in pair.sizes if size not in pair.check_sizes]
    if wanted == "all":
        return [
            size
            for size in timed
            if (size == "cpu") <= on_cpu and not (on_cpu and size == "default" and "cpu" in timed)
        ]
    if wanted == "default" and on_cpu and "cpu" in timed:
        return ["cpu"]
    return [size for size in timed if size == wanted or size.startswith(f"{wanted}/")]


@cache
def survey_apart(device: str | None, with_limits: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what this machine is, what it can do), found once, in a child, because that needs CUDA. Raises DeviceError."""
    try:
        return process.call(_survey, device or default_device(), with_limits)
    except process.Death as death:
        raise DeviceError(str(death).removeprefix("ValueError: ").removeprefix("RuntimeError: ")) from None


def _survey(device: str, with_limits: bool, say: Callable[[str, float], None]) -> tuple[dict[str, Any], dict[str, Any]]:
    say("device", 0.0)
    info = describe(device)
    use_device(device)
    say("limits", 0.5)
    limits = {key: asdict(limit) for key, limit in measure_limits(device).items()} if with_limits else {}
    return info, limits


def run_pairs(
    pairs: list[Pair],
    size: str = "default",
    device: str | None = None,
    fast: bool = False,
    check_only: bool = False,
    on_progress: Progress = lambda pair, size, stage, fraction: None,
    on_record: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Measure pairs one after the other. A bad pair never raises; Ctrl-C returns what there is, marked `interrupted`.

    `on_record` gets the record so far after each pair. Raises DeviceError.
    """
    device = device or default_device()
    device = "cpu" if device.startswith("cpu:") else device  # what a pair compares with
    found, limits = survey_apart(device, not check_only)
    info, date = dict(found), datetime.now(UTC).isoformat(timespec="seconds")
    environment = {"device": info, "versions": versions(), "platform": sys.platform, "date": date, "argv": sys.argv[1:]}
    record = Record(SCHEMA, {**environment, "fast": fast, "interrupted": False}, limits, [])
    jobs = [(pair, chosen) for pair in pairs for chosen in sizes_of(pair, size, info["kind"] == "cpu")]
    try:
        for number, (pair, chosen) in enumerate(jobs):
            on_progress(pair, chosen, "start", 0.0)
            job = Job(pair, chosen, device, info, limits, [], [], FAST_BLOCKS if fast else None, seed=number)
            result = _run_one(job, check_only, partial(on_progress, pair, chosen))
            record = replace(record, pairs=[*record.pairs, result])
            on_record(record)
    except KeyboardInterrupt:
        record = replace(record, environment={**record.environment, "interrupted": True})
    if info["kind"] == "cuda":
        record.environment["clocks_at_end"] = clocks_now(info["uuid"])
    return record


def _run_one(job: Job, check_only: bool, on_progress: Callable[[str, float], None]) -> PairResult:
    """One pair in its process. Halves that cannot run here are skipped; without their baseline all are."""
    on_cpu, variants = job.info["kind"] == "cpu", job.pair.variants
    reasons = {half.label: why_not(half, job.info, job.info["gpus"]) for half in job.pair.halves}
    labels = [label for label, reason in reasons.items() if not reason]
    if "baseline" not in labels or len(labels) == 1:
        return _untimed(job, {half.label: ("skipped", reasons[half.label] or reasons["baseline"]) for half in variants})
    interpreted = {half.label for half in job.pair.halves if on_cpu and "triton" in half.imports}
    timed = [label for label in labels if label not in interpreted and not check_only]
    job = replace(job, labels=labels, timed=timed)
    variables = {"TRITON_INTERPRET": "1"} if on_cpu else {}
    try:
        result: PairResult = process.call(_measure, job, environment=variables, on_progress=on_progress)
    except process.Death as death:
        result = _untimed(job, {half.label: ("died", str(death)) for half in variants if half.label in labels})
    why = "in Triton's interpreter at the check sizes; timing needs a GPU"
    rows = [
        replace(row, reason=why) if row.verdict == "checked" and interpreted & {row.variant, "baseline"} else row
        for row in result.rows
    ]
    rows += [Row(half.label, "baseline", "skipped", reasons[half.label]) for half in variants if reasons[half.label]]
    return replace(result, rows=rows)


def _measure(job: Job, say: Callable[[str, float], None]) -> PairResult:
    try:
        return measure(job, say)
    except DoesNotFit as error:
        return _untimed(job, {label: ("skipped", str(error)) for label in job.labels if label != "baseline"})


def _untimed(job: Job, verdicts: dict[str, tuple[str, str]]) -> PairResult:
    pair = job.pair
    rows = [Row(label, "baseline", verdict, reason) for label, (verdict, reason) in verdicts.items()]
    return PairResult(pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows)


def has_failed(record: Record) -> bool:
    """Is some pair invalid, or did it die?"""
    return any(row.verdict in ("invalid", "died") for pair in record.pairs for row in pair.rows)
