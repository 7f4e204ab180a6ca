"""From samples to conclusions: what of a session may be believed, and the rows that it says."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from common.engine.arms import LIBRARY_KINDS, LiveArm
from common.engine.job import Job
from common.engine.session import Session
from common.machine.clock import Clock
from common.machine.limits import Limit, measure_limits, of_limit
from common.pairs.contract import Version
from common.pairs.source import remarks, source_hash
from common.record import stats
from common.record.result import CONTROL, Arm, PairResult, Row

FLOOR_TIMES = 3  # a time below this many floors of the clock is below its resolution
LONG_COMPILE_S = 1.0  # worth a note
IN_DOUBT = 2  # times below the measured limit a time is none
ABOVE_LIMIT = 1.05  # so far above a measured limit an arm may lie before the limit is in doubt
MORE_CORES = 0.5  # kept busy than the other arm does: worth a note
UNEVEN = 1.25  # times the baseline's mean over median: what a median hides
LEAST_ALLOCATED = 64 << 10  # bytes: a difference below is small change


def pair_result(session: Session, clock: Clock | None) -> PairResult:
    """The pair's record: rows for every variant that was loaded, samples only of arms that may be believed."""
    job, pair = session.job, session.job.pair
    timed = [arm for arm in session.remaining if clock and arm.seconds]
    for label, reason in _too_fast(timed, job).items():
        session.disqualify(label, reason)
    arms = {arm.label: _arm(arm, job.limits, clock) for arm in session.remaining if arm in timed and clock}
    floor = stats.noise_floor(arms["baseline"].seconds, arms[CONTROL].seconds) if arms else None
    cost = session.arms[0].cost if session.arms else {}
    least_s, by = of_limit(cost, job.limits)
    loaded = [version for version in pair.variants if version.label in job.labels]
    rows = [row for version in loaded for row in _rows(session, version, arms, floor)]
    return PairResult(
        pair.chapter, pair.name, job.size, pair.sizes[job.size], source_hash(pair), rows, clock.name if clock else "",
        floor, cost, least_s, by, arms, session.orders, session.seeds, session.voided, session.spent_s,
        clocks=session.clocks,
    )  # fmt: skip


def _too_fast(timed: list[LiveArm], job: Job) -> dict[str, str]:
    """Of which arms the work was not done in the time that was found, and why.

    Where a measured limit alone says so it is measured again: something else may have run before.
    """
    times = {arm.label: stats.overall_median(arm.seconds) for arm in timed}
    limits, cache = job.limits, job.info.get("cache_bytes")

    def doubt(arm: LiveArm) -> str:
        return impossible(IN_DOUBT * times[arm.label], arm.cost, limits, cache, "measured")

    if any(map(doubt, timed)):
        limits = _better(limits, measure_limits(job.device))
    found = {}
    for arm in timed:
        if why := impossible(times[arm.label], arm.cost, limits, cache, "datasheet"):
            us = times[arm.label] * 1e6
            found[arm.label] = f"{us:.1f} us is below the physical limit: {why} at the datasheet's peak"
        elif why := doubt(arm):
            below = f"less than 1 / {IN_DOUBT} of the time at the measured limit"
            found[arm.label] = f"{below}: {why}, no cache explains it"
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


def _arm(arm: LiveArm, limits: dict[str, Any], clock: Clock) -> Arm:
    median_s = stats.overall_median(arm.seconds)
    (measured, by), (sheet, _) = (of_limit(arm.cost, limits, which) for which in ("measured", "datasheet"))
    host_s = arm.host_s if clock.name == "device" else None
    of = (measured and measured / median_s, sheet and sheet / median_s)  # None where a peak is not known
    return Arm(median_s, host_s, *of, arm.compile_s, arm.seconds, arm.allocated_bytes, by, arm.peak_bytes)


def _rows(session: Session, version: Version, arms: dict[str, Arm], floor: float | None) -> list[Row]:
    """A variant against the baseline, and against the earlier rung it names."""
    precision = version.constants.get("PRECISION", "")
    for guilty, whose in (("baseline", "the baseline: "), (version.label, "")):
        if guilty in session.disqualified:
            verdict, reason = session.disqualified[guilty]
            return [Row(version.label, "baseline", verdict, whose + reason, precision=precision)]
    known = remarks(version, session.job.pair.baseline)
    if version.label not in arms or floor is None:
        voided = f"not timed: all {session.voided} rounds were voided for thermal or hardware slowdown"
        reason = voided if session.voided else ""
        return [Row(version.label, "baseline", "verified", reason, precision=precision, notes=known)]
    notes, others = known + _notes(session, arms, version.label), ("baseline", version.versus)
    rows = [_believed(session, arms, version.label, other, floor) for other in others if other in arms]
    return [replace(row, precision=precision, notes=notes) for row in rows]


def _believed(session: Session, arms: dict[str, Arm], variant: str, versus: str, floor: float) -> Row:
    """A row from samples that were found valid."""
    short = _too_short(session, arms)
    for label in (variant, versus):
        if label in short:
            return Row(variant, versus, "too short", short[label])
    ratio = stats.estimate(arms[versus].seconds, arms[variant].seconds)
    blocks = len(arms[variant].seconds)
    if not stats.sign_interval_rank(blocks):
        return Row(variant, versus, "unsure", f"only {blocks} blocks: an interval needs six", ratio.ratio)
    verdict, reason = stats.verdict(ratio, floor)
    libraries = {}
    precisions = {arm.label: arm.precision for arm in session.arms}
    for label in _libraries(arms):  # but for those of another precision, which do less than this variant
        if label not in short and precisions[label] in ("", precisions[variant]):
            against = stats.estimate(arms[label].seconds, arms[variant].seconds)
            named = {"precision": precisions[label]} if precisions[label] else {}
            libraries[label] = {"ratio": against.ratio, "interval": (against.low, against.high), **named}
    return Row(variant, versus, verdict, reason, ratio.ratio, (ratio.low, ratio.high), libraries)


def _too_short(session: Session, arms: dict[str, Arm]) -> dict[str, str]:
    """Of which arms a time is none, and why."""
    short = [arm for arm in session.arms if arm.label in arms and arms[arm.label].median_s < FLOOR_TIMES * arm.floor_s]
    why = f"below the timer's resolution: less than {FLOOR_TIMES} x the clock's own floor of"
    return {arm.label: f"{why} {arm.floor_s * 1e6:.3g} us" for arm in short}


def _libraries(labels: Iterable[str]) -> list[str]:
    return [label for label in labels if label.split("/")[0] in LIBRARY_KINDS]


def _waits(arms: Iterable[LiveArm]) -> list[str]:
    """Whose median may be of samples in which the device waited for the host; a few of many leave it as it is."""
    often = [(arm.label, f"{arm.waited} of {len(arm.tails)}") for arm in arms if arm.waited > len(arm.tails) / 4]
    return [f"{who}: its time is in part the host's, for which the device waited in {n} samples" for who, n in often]


def _notes(session: Session, arms: dict[str, Arm], label: str) -> list[str]:
    """What a reader must know beside a time."""
    arm, notes = arms[label], []
    if arm.host_s is not None and arm.host_s > arm.median_s:
        work = f"{arm.median_s * 1e6:.0f} us of device work"
        notes.append(f"launch-bound: the host needs {arm.host_s * 1e6:.0f} us to issue {work}")
    notes += _waits(each for each in session.arms if each.label in (label, "baseline", *_libraries(arms)))
    notes += [f"{each}: {why}" for each, why in _too_short(session, arms).items() if each in _libraries(arms)]
    if arm.compile_s > LONG_COMPILE_S:
        notes.append(f"its first calls took {arm.compile_s:.1f} s longer: compiling, tuning")
    live, base = (next(each for each in session.arms if each.label == name) for name in (label, "baseline"))
    if not live.traced:
        notes.append("the profiler could not see the device: whether all streams are joined is known from times alone")
    cores = [float(np.median(each.cores)) for each in (live, base)]
    if session.job.info["kind"] == "cpu" and max(cores) - min(cores) > MORE_CORES:
        notes.append(f"keeps {cores[0]:.1f} cores busy, the baseline {cores[1]:.1f}")
    dearer = [np.mean(np.concatenate(each.seconds)) / stats.overall_median(each.seconds) for each in (live, base)]
    if dearer[0] > UNEVEN * dearer[1]:
        notes.append(f"some of its calls are much dearer: their mean is {dearer[0]:.2f} of the median")
    mine, theirs = (each.allocated_bytes or 0 for each in (live, base))
    if abs(mine - theirs) > max(LEAST_ALLOCATED, 0.1 * theirs):
        notes.append(f"allocates {_mebibytes(mine)} a call, the baseline {_mebibytes(theirs)}")
    cost, cache_bytes = session.arms[0].cost, session.job.info.get("cache_bytes") or 0
    is_warm = arm.host_s is None  # by the wall clock: the device's begins with a cold L2
    if is_warm and of_limit(cost, session.job.limits)[1] == "dram_bytes" and cost["dram_bytes"] <= cache_bytes:
        notes.append("fits in the cache: its limit is not memory bandwidth")
    elif arm.of_limit and arm.of_limit > ABOVE_LIMIT:
        notes.append("above the measured limit: something else ran while the limits were measured")
    return notes + [f"{name}: {session.disqualified[name][1]}" for name in _libraries(session.disqualified)]


def _mebibytes(amount: int) -> str:
    return f"{amount / 2**20:,.1f} MiB" if amount >= LEAST_ALLOCATED else "next to nothing"
