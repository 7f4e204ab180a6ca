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
ABOVE_LIMIT = 1.05  # a candidate this far above a measured limit makes the limit doubtful
MORE_CORES = 0.5  # difference in busy cores that a note mentions
UNEVEN = 1.25  # times the baseline's mean over median: a median hides this
LEAST_ALLOCATED = 64 << 10  # bytes: smaller differences are not mentioned
IN_DOUBT = 2  # a time this many times below the measured limit is impossible
TAIL_S, TAIL_SHARE = 50e-6, 0.02  # work after the clock's stop that is usually longer: a stream is not joined
TAIL_OTHERS = 4  # times the shortest among the other candidates
TAIL_WAITS = 10  # times the cost of waiting on an idle device: on a busy host a wait after many launches is longer

Facts = dict[str, Any]


def pair_result(bench: Bench, samples: Samples) -> PairResult:
    """The pair's record: rows for every loaded variant, samples of reliable candidates."""
    job, pair = bench.job, bench.job.pair
    timed = [candidate.label for candidate in bench.remaining] if samples.blocks else []
    bench = bench.without({**impossible_times(timed, samples, job), **late_work(timed, samples)})
    remaining = {candidate.label for candidate in bench.remaining}
    arms = {label: _arm(label, samples, job.limits) for label in timed if label in remaining}
    libraries = {candidate.label: candidate.precision for candidate in bench.candidates if candidate.is_library}
    arms = {label: replace(arm, precision=libraries.get(label, "")) for label, arm in arms.items()}
    floor = stats.noise_floor(arms["baseline"].seconds, arms[CONTROL].seconds) if arms else None
    cost = samples.costs.get("baseline", {})
    least_s, limit_by = limit_time(cost, job.limits)
    loaded = [version for version in pair.variants if version.label in job.labels]
    rows = [row for version in loaded for row in _rows(bench, version, arms, floor or 0.0, samples)]
    orders = [[list(by_label) for by_label in block] for block in samples.blocks]
    return PairResult(
        pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows, samples.clock, floor, cost,
        least_s, limit_by, arms, orders, [*bench.seeds], samples.voided_rounds, bench.progress.spent_s,
        clocks=samples.clocks, group=bench.ranks.description(), whole_draws=samples.plan.whole_draws,
    )  # fmt: skip


def _arm(label: str, samples: Samples, limits: dict[str, Any]) -> Arm:
    timing, cost, base = samples.plan.timings[label], samples.costs[label], samples.costs["baseline"]
    host_s = timing.host_s if samples.clock == "device" else None
    trace = samples.traces.get(label)
    names = ("allocated_bytes", "peak_bytes", "kernels")
    untimed: dict[str, Any] = {name: getattr(trace, name) for name in names} if trace else {}
    arm = Arm(0.0, host_s, None, None, timing.compile_s, samples.seconds(label), calls=timing.calls, **untimed)
    arm = replace(arm, **_errors(samples.errors.get(label)), floor_s=timing.floor_s, cost={} if cost == base else cost)
    arm = recompute.with_shares(arm, base, limits)
    by_rank = [[list(by_label[label].by_rank) for by_label in block] for block in samples.blocks]
    return replace(arm, by_rank=by_rank, sent_bytes=samples.sent_bytes.get(label, [])) if by_rank[0][0] else arm


def _errors(by_path: Errors | None) -> dict[str, Any]:
    """The errors of the worst array of an answer: 0 if none is of a floating type, nothing if it was not judged."""
    if by_path is None:
        return {}
    largest, rms = map(max, zip(Error(), *by_path.values(), strict=True))
    return {"max_error": largest, "rms_error": rms}


def _rows(bench: Bench, version: Version, arms: dict[str, Arm], floor: float, samples: Samples) -> list[Row]:
    """A variant's rows: against the baseline, and against the earlier variant that it names."""
    precision = version.constants.get("PRECISION", "")
    for culprit, whose in (("baseline", {"whose": "baseline"}), (version.label, {})):
        if culprit in bench.outcomes:
            outcome = bench.outcomes[culprit]
            reason = outcome.reason and outcome.reason.with_facts(**whose)
            return [Row(version.label, "baseline", outcome.verdict, reason, precision=precision)]
    copy, empty = (test(version, bench.job.pair.baseline) for test in (is_copy, has_no_launch))
    source_notes = [Finding(Cause.IS_A_COPY if copy else Cause.NO_KERNEL)] if copy or empty else []
    if version.label not in arms:
        voided = samples.voided_rounds
        reason = Finding(Cause.ALL_VOIDED, {"rounds": voided}) if voided else None
        return [Row(version.label, "baseline", Verdict.VERIFIED, reason, precision=precision, notes=source_notes)]
    notes, others = source_notes + _notes(bench, arms, samples, version.label), ("baseline", version.versus)
    rows = [recompute.row(arms, version.label, other, floor, precision) for other in others if other in arms]
    return [replace(row, notes=notes) for row in rows]


def _libraries(labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.split("/")[0] in LIBRARY_KINDS]


def _wait_notes(labels: Iterable[str], samples: Samples) -> list[Finding]:
    """Notes on candidates whose device waited for the host in more than a quarter of the samples."""
    waits = {label: [sample.device_waited for sample in samples.for_label(label)] for label in labels}
    frequent = {label: flags for label, flags in waits.items() if sum(flags) > len(flags) / 4}
    facts = ({"whose": label, "waits": sum(flags), "samples": len(flags)} for label, flags in frequent.items())
    return [Finding(Cause.DEVICE_WAITED, fact) for fact in facts]


def _notes(bench: Bench, arms: dict[str, Arm], samples: Samples, label: str) -> list[Finding]:
    """Notes that belong beside a time."""
    arm, notes, libraries = arms[label], list[Finding](), _libraries(arms)
    notes += [arm.host_bound] if arm.host_bound else []
    notes += _wait_notes([name for name in arms if name in (label, "baseline", *libraries)], samples)
    short = [name for name in libraries if recompute.is_short(arms[name])]
    notes += [recompute.too_short(arms[name]).with_facts(whose=name) for name in short]
    if arm.compile_s > LONG_COMPILE_S:
        notes.append(Finding(Cause.COMPILED_LONG, {"seconds": arm.compile_s}))
    if label in samples.traces and not samples.traces[label].is_known:
        notes.append(Finding(Cause.NOT_PROFILED))
    cores = [float(np.median([sample.cores for sample in samples.for_label(name)])) for name in (label, "baseline")]
    if bench.job.info["kind"] == "cpu" and max(cores) - min(cores) > MORE_CORES:
        notes.append(Finding(Cause.CORES_BUSY, {"cores": cores[0], "baseline": cores[1]}))
    unevenness = [np.mean(np.concatenate(arms[name].seconds)) / arms[name].median_s for name in (label, "baseline")]
    if unevenness[0] > UNEVEN * unevenness[1]:
        notes.append(Finding(Cause.UNEVEN, {"times": float(unevenness[0])}))
    allocated, base_allocated = (arms[name].allocated_bytes or 0 for name in (label, "baseline"))
    if abs(allocated - base_allocated) > max(LEAST_ALLOCATED, 0.1 * base_allocated):
        notes.append(Finding(Cause.ALLOCATES, {"bytes": allocated, "baseline": base_allocated}))
    cost, cache_bytes = samples.costs["baseline"], bench.job.info.get("cache_bytes") or 0
    is_warm = arm.host_s is None  # the wall clock; the device's clock begins with a cold L2
    by = limit_time(cost, bench.job.limits)[1]
    if is_warm and by.startswith("dram") and cost[by] <= cache_bytes:
        notes.append(Finding(Cause.FITS_IN_CACHE))
    elif arm.of_limit and arm.of_limit > ABOVE_LIMIT:
        notes.append(Finding(Cause.ABOVE_LIMIT))
    reasons = ((name, bench.outcomes[name].reason) for name in _libraries(bench.outcomes))
    return notes + [reason.with_facts(whose=name) for name, reason in reasons if reason]


def impossible_times(labels: list[str], samples: Samples, job: Job) -> dict[str, Finding]:
    """Label -> reason, for times in which the work cannot be done.

    If only a measured limit is violated, it is measured again: something else may have run before.
    """
    times = {label: stats.overall_median(samples.seconds(label)) for label in labels}
    limits, cache = job.limits, job.info.get("cache_bytes")

    def doubt(label: str) -> Facts | None:
        return impossible_work(IN_DOUBT * times[label], samples.costs[label], limits, cache, "measured")

    if any(map(doubt, labels)):
        limits = _higher_limits(limits, measure_limits(job.device))
    findings = dict[str, Finding]()
    for label in labels:
        if facts := impossible_work(times[label], samples.costs[label], limits, cache, "datasheet"):
            findings[label] = Finding(Cause.BELOW_DATASHEET, {**facts, "us": times[label] * 1e6})
        elif facts := doubt(label):
            findings[label] = Finding(Cause.BELOW_LIMIT, {**facts, "factor": IN_DOUBT})
    return findings


def late_work(labels: list[str], samples: Samples) -> dict[str, Finding]:
    """Label -> reason, for candidates whose device usually works on after the clock has stopped, as every sample shows.

    A busy host waits longer itself, for all candidates. So only one that works on longer than the others counts.
    """
    tails = {label: statistics.median(sample.tail_s for sample in samples.for_label(label)) for label in labels}
    findings = {}
    for label, tail_s in tails.items():
        wait_s = TAIL_WAITS * statistics.median(sample.idle_s for sample in samples.for_label(label))
        least_s = TAIL_SHARE * stats.overall_median(samples.seconds(label))
        if tail_s > max(TAIL_S, least_s, wait_s, TAIL_OTHERS * min(tails.values())):
            findings[label] = Finding(Cause.NOT_JOINED, {"us": tail_s * 1e6})
    return findings


def _higher_limits(limits: dict[str, Any], remeasured: dict[str, Limit]) -> dict[str, Any]:
    """Each limit with the higher of two measured rates."""
    both_measured = {key: limits[key] for key in remeasured.keys() & limits.keys()}
    rates = {
        key: max(limit["measured"] or 0.0, remeasured[key].measured or 0.0) for key, limit in both_measured.items()
    }
    return limits | {key: {**limit, "measured": rates[key]} for key, limit in both_measured.items()}


def impossible_work(
    seconds: float, cost: dict[str, float], limits: dict[str, Any], cache: int | None, which: str
) -> Facts | None:
    """The work that cannot be done in this time at these peaks; None if all can. Data in a cache need not move."""
    for key, amount in cost.items():
        peak = limits.get(key, {}).get(which)
        least_amount = max(0.0, amount - (cache or 0)) if key.startswith("dram") else amount
        if peak and seconds < (least_s := least_amount / peak):
            return {"amount": f"{amount:.3g} {key.replace('_', ' ')}", "least_us": least_s * 1e6}
    return None
