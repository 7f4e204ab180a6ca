"""From samples to conclusions: impossible times (too short for the work, or the work goes on), a pair's rows."""

import statistics
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from common import stats
from common.checks.compare_to_baseline import Error, Errors
from common.engine.candidates import LIBRARY_KINDS
from common.engine.job import Job
from common.engine.sampling import Samples
from common.engine.stage import Bench
from common.machine.limits import Limit, measure_limits
from common.pairs.contract import Version
from common.pairs.source import has_no_launch, is_copy, source_hash
from common.record import recompute
from common.record.outcome import Cause, Finding, Verdict
from common.record.recompute import limit_time
from common.record.result import CONTROL, Arm, PairResult, Row

LONG_COMPILE_S = 1.0  # above this, a note says so
ABOVE_LIMIT = 1.05  # an arm this far above a measured limit makes the limit doubtful
MORE_CORES = 0.5  # difference in busy cores that a note mentions
UNEVEN = 1.25  # times the baseline's mean over median: a median hides this
LEAST_ALLOCATED = 64 << 10  # bytes: smaller differences are not mentioned
IN_DOUBT = 2  # a time this many times below the measured limit is impossible
TAIL_S, TAIL_SHARE = 50e-6, 0.02  # work after the clock's stop that is usually longer: a stream is not joined
TAIL_OTHERS = 4  # times the shortest among the other arms
TAIL_WAITS = 10  # times the cost of waiting on an idle device: on a busy host a wait after many launches is longer

Facts = dict[str, Any]


def pair_result(bench: Bench, samples: Samples) -> PairResult:
    """The pair's record: rows for every loaded variant, samples of reliable arms."""
    job, pair = bench.job, bench.job.pair
    timed = [each.label for each in bench.remaining] if samples.blocks else []
    bench = bench.without({**too_fast(timed, samples, job), **works_on(timed, samples)})
    left = {each.label for each in bench.remaining}
    arms = {label: _arm(label, samples, job.limits) for label in timed if label in left}
    libraries = {each.label: each.precision for each in bench.candidates if each.is_library}
    arms = {label: replace(arm, precision=libraries.get(label, "")) for label, arm in arms.items()}
    floor = stats.noise_floor(arms["baseline"].seconds, arms[CONTROL].seconds) if arms else None
    cost = samples.costs.get("baseline", {})
    least_s, by = limit_time(cost, job.limits)
    loaded = [version for version in pair.variants if version.label in job.labels]
    rows = [row for version in loaded for row in _rows(bench, version, arms, floor or 0.0, samples)]
    orders = [[list(each) for each in block] for block in samples.blocks]
    return PairResult(
        pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows, samples.clock, floor, cost,
        least_s, by, arms, orders, [*bench.seeds], samples.voided, bench.progress.spent_s, clocks=samples.clocks,
        group=bench.ranks.described(),
    )  # fmt: skip


def _arm(label: str, samples: Samples, limits: dict[str, Any]) -> Arm:
    pace, cost, base = samples.plan.paces[label], samples.costs[label], samples.costs["baseline"]
    host_s = pace.host_s if samples.clock == "device" else None
    seen = samples.seen.get(label)
    names = ("allocated_bytes", "peak_bytes", "kernels")
    untimed: dict[str, Any] = {name: getattr(seen, name) for name in names} if seen else {}
    arm = Arm(0.0, host_s, None, None, pace.compile_s, samples.seconds(label), calls=pace.calls, **untimed)
    arm = replace(arm, **_errors(samples.errors.get(label)), floor_s=pace.floor_s, cost={} if cost == base else cost)
    arm = recompute.with_shares(arm, base, limits)
    by_rank = [[list(each[label].by_rank) for each in block] for block in samples.blocks]
    return replace(arm, by_rank=by_rank, sent_bytes=samples.sent.get(label, [])) if by_rank[0][0] else arm


def _errors(by_path: Errors | None) -> dict[str, Any]:
    """The errors of the worst array of an answer: 0 if none is of a floating type, nothing if it was not judged."""
    if by_path is None:
        return {}
    largest, rms = map(max, zip(Error(), *by_path.values(), strict=True))
    return {"max_error": largest, "rms_error": rms}


def _rows(bench: Bench, version: Version, arms: dict[str, Arm], floor: float, samples: Samples) -> list[Row]:
    """A variant's rows: against the baseline, and against the earlier variant that it names."""
    precision = version.constants.get("PRECISION", "")
    for guilty, whose in (("baseline", {"whose": "baseline"}), (version.label, {})):
        if guilty in bench.outcomes:
            outcome = bench.outcomes[guilty]
            reason = outcome.reason and outcome.reason.with_facts(**whose)
            return [Row(version.label, "baseline", outcome.verdict, reason, precision=precision)]
    copy, empty = (has(version, bench.job.pair.baseline) for has in (is_copy, has_no_launch))
    known = [Finding(Cause.IS_A_COPY if copy else Cause.NO_KERNEL)] if copy or empty else []
    if version.label not in arms:
        voided = samples.voided
        reason = Finding(Cause.ALL_VOIDED, {"rounds": voided}) if voided else None
        return [Row(version.label, "baseline", Verdict.VERIFIED, reason, precision=precision, notes=known)]
    notes, others = known + _notes(bench, arms, samples, version.label), ("baseline", version.versus)
    rows = [recompute.row(arms, version.label, other, floor, precision) for other in others if other in arms]
    return [replace(row, notes=notes) for row in rows]


def _libraries(labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.split("/")[0] in LIBRARY_KINDS]


def _waits(labels: Iterable[str], samples: Samples) -> list[Finding]:
    """Notes on arms whose device waited for the host in more than a quarter of the samples."""
    waits = {label: [sample.waited for sample in samples.of(label)] for label in labels}
    often = {label: found for label, found in waits.items() if sum(found) > len(found) / 4}
    facts = ({"whose": label, "waits": sum(found), "samples": len(found)} for label, found in often.items())
    return [Finding(Cause.DEVICE_WAITED, each) for each in facts]


def _notes(bench: Bench, arms: dict[str, Arm], samples: Samples, label: str) -> list[Finding]:
    """Notes that belong beside a time."""
    arm, notes, libraries = arms[label], list[Finding](), _libraries(arms)
    notes += [arm.host_bound] if arm.host_bound else []
    notes += _waits([each for each in arms if each in (label, "baseline", *libraries)], samples)
    notes += [
        recompute.too_short(arms[each]).with_facts(whose=each) for each in libraries if recompute.is_short(arms[each])
    ]
    if arm.compile_s > LONG_COMPILE_S:
        notes.append(Finding(Cause.COMPILED_LONG, {"seconds": arm.compile_s}))
    if label in samples.seen and not samples.seen[label].is_known:
        notes.append(Finding(Cause.NOT_PROFILED))
    cores = [float(np.median([sample.cores for sample in samples.of(each)])) for each in (label, "baseline")]
    if bench.job.info["kind"] == "cpu" and max(cores) - min(cores) > MORE_CORES:
        notes.append(Finding(Cause.CORES_BUSY, {"cores": cores[0], "baseline": cores[1]}))
    dearer = [np.mean(np.concatenate(arms[each].seconds)) / arms[each].median_s for each in (label, "baseline")]
    if dearer[0] > UNEVEN * dearer[1]:
        notes.append(Finding(Cause.UNEVEN, {"times": float(dearer[0])}))
    mine, theirs = (arms[each].allocated_bytes or 0 for each in (label, "baseline"))
    if abs(mine - theirs) > max(LEAST_ALLOCATED, 0.1 * theirs):
        notes.append(Finding(Cause.ALLOCATES, {"bytes": mine, "baseline": theirs}))
    cost, cache_bytes = samples.costs["baseline"], bench.job.info.get("cache_bytes") or 0
    is_warm = arm.host_s is None  # the wall clock; the device's clock begins with a cold L2
    if is_warm and limit_time(cost, bench.job.limits)[1] == "dram_bytes" and cost["dram_bytes"] <= cache_bytes:
        notes.append(Finding(Cause.FITS_IN_CACHE))
    elif arm.of_limit and arm.of_limit > ABOVE_LIMIT:
        notes.append(Finding(Cause.ABOVE_LIMIT))
    reasons = ((name, bench.outcomes[name].reason) for name in _libraries(bench.outcomes))
    return notes + [reason.with_facts(whose=name) for name, reason in reasons if reason]


def too_fast(labels: list[str], samples: Samples, job: Job) -> dict[str, Finding]:
    """Label -> reason, for times in which the work cannot be done.

    If only a measured limit is violated, it is measured again: something else may have run before.
    """
    times = {label: stats.overall_median(samples.seconds(label)) for label in labels}
    limits, cache = job.limits, job.info.get("cache_bytes")

    def doubt(label: str) -> Facts | None:
        return impossible(IN_DOUBT * times[label], samples.costs[label], limits, cache, "measured")

    if any(map(doubt, labels)):
        limits = _better(limits, measure_limits(job.device))
    found = dict[str, Finding]()
    for label in labels:
        if why := impossible(times[label], samples.costs[label], limits, cache, "datasheet"):
            found[label] = Finding(Cause.BELOW_DATASHEET, {**why, "us": times[label] * 1e6})
        elif why := doubt(label):
            found[label] = Finding(Cause.BELOW_LIMIT, {**why, "factor": IN_DOUBT})
    return found


def works_on(labels: list[str], samples: Samples) -> dict[str, Finding]:
    """Label -> reason, for arms whose device usually works on after the clock has stopped, as every sample shows.

    A busy host waits longer itself, in all arms. So only an arm that works on longer than the others counts.
    """
    tails = {label: statistics.median(sample.tail_s for sample in samples.of(label)) for label in labels}
    found = {}
    for label, tail_s in tails.items():
        wait_s = TAIL_WAITS * statistics.median(sample.idle_s for sample in samples.of(label))
        least_s = TAIL_SHARE * stats.overall_median(samples.seconds(label))
        if tail_s > max(TAIL_S, least_s, wait_s, TAIL_OTHERS * min(tails.values())):
            found[label] = Finding(Cause.NOT_JOINED, {"us": tail_s * 1e6})
    return found


def _better(limits: dict[str, Any], again: dict[str, Limit]) -> dict[str, Any]:
    """Each limit with the higher of two measured rates."""
    known = {key: limits[key] for key in again.keys() & limits.keys()}
    rates = {key: max(limit["measured"] or 0.0, again[key].measured or 0.0) for key, limit in known.items()}
    return limits | {key: {**limit, "measured": rates[key]} for key, limit in known.items()}


def impossible(
    seconds: float, cost: dict[str, float], limits: dict[str, Any], cache: int | None, which: str
) -> Facts | None:
    """The work that cannot be done in this time at these peaks; None if all can. Data in a cache need not move."""
    for key, amount in cost.items():
        peak = limits.get(key, {}).get(which)
        moved = max(0.0, amount - (cache or 0)) if key == "dram_bytes" else amount
        if peak and seconds < (least_s := moved / peak):
            return {"amount": f"{amount:.3g} {key.replace('_', ' ')}", "least_us": least_s * 1e6}
    return None
