"""May a time be believed? Not one in which the work cannot be done, nor one that ends before the work does."""

import statistics
from typing import Any

from common.engine.job import Job
from common.engine.rounds import Samples
from common.machine.limits import Limit, measure_limits
from common.record import stats

IN_DOUBT = 2  # times below the measured limit a time is none
TAIL_S, TAIL_SHARE = 50e-6, 0.02  # a device that works on for longer, usually, after the clock stopped was not joined
TAIL_OTHERS = 4  # times the shortest of all that were timed beside it
TAIL_WAITS = 10  # times what waiting costs on an idle device: the first wait after many launches costs a busy host more


def too_fast(labels: list[str], samples: Samples, job: Job) -> dict[str, str]:
    """Whose work was not done in the time that was found, and why.

    Where a measured limit alone says so it is measured again: something else may have run before.
    """
    times = {label: stats.overall_median(samples.seconds(label)) for label in labels}
    limits, cache = job.limits, job.info.get("cache_bytes")

    def doubt(label: str) -> str:
        return impossible(IN_DOUBT * times[label], samples.costs[label], limits, cache, "measured")

    if any(map(doubt, labels)):
        limits = _better(limits, measure_limits(job.device))
    found = {}
    for label in labels:
        if why := impossible(times[label], samples.costs[label], limits, cache, "datasheet"):
            us = times[label] * 1e6
            found[label] = f"{us:.1f} us is below the physical limit: {why} at the datasheet's peak"
        elif why := doubt(label):
            below = f"less than 1 / {IN_DOUBT} of the time at the measured limit"
            found[label] = f"{below}: {why}, no cache explains it"
    return found


def works_on(labels: list[str], samples: Samples) -> dict[str, str]:
    """Whose device usually works on after the clock has stopped: as every sample shows, watched by nothing else.

    A host that others keep busy waits longer itself, and so for all: who works on does so for longer than the others.
    """
    tails = {label: statistics.median(sample.tail_s for sample in samples.of(label)) for label in labels}
    found = {}
    for label, tail_s in tails.items():
        wait_s = TAIL_WAITS * statistics.median(sample.idle_s for sample in samples.of(label))
        least_s = TAIL_SHARE * stats.overall_median(samples.seconds(label))
        if tail_s > max(TAIL_S, least_s, wait_s, TAIL_OTHERS * min(tails.values())):
            late = f"its device works on for {tail_s * 1e6:.0f} us after the clock stopped"
            found[label] = f"{late}: a stream is not joined"
    return found


def _better(limits: dict[str, Any], again: dict[str, Limit]) -> dict[str, Any]:
    """Each limit with the higher of two measured rates."""
    known = {key: limits[key] for key in again.keys() & limits.keys()}
    rates = {key: max(limit["measured"] or 0.0, again[key].measured or 0.0) for key, limit in known.items()}
    return limits | {key: {**limit, "measured": rates[key]} for key, limit in known.items()}


def impossible(seconds: float, cost: dict[str, float], limits: dict[str, Any], cache: int | None, which: str) -> str:
    """Which work cannot be done in that time at such peaks; empty if all can. What fits in a cache need not move."""
    for key, amount in cost.items():
        peak = limits.get(key, {}).get(which)
        moved = max(0.0, amount - (cache or 0)) if key == "dram_bytes" else amount
        if peak and seconds < (least_s := moved / peak):
            return f"{amount:.3g} {key.replace('_', ' ')} take {least_s * 1e6:.1f} us"
    return ""
