"""Impossible times: too short for the work, or ending before the work does."""

import statistics
from typing import Any

from common import stats
from common.engine.job import Job
from common.engine.sampling import Samples
from common.machine.limits import Limit, measure_limits
from common.record.outcome import Cause, Finding

IN_DOUBT = 2  # a time this many times below the measured limit is impossible
TAIL_S, TAIL_SHARE = 50e-6, 0.02  # work after the clock's stop that is usually longer: a stream is not joined
TAIL_OTHERS = 4  # times the shortest among the other arms
TAIL_WAITS = 10  # times the cost of waiting on an idle device: on a busy host a wait after many launches is longer

Facts = dict[str, Any]


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
