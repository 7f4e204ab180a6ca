"""From samples to conclusions: the rows of a pair's result. Pure functions; nothing here measures."""

from typing import Any

from common import stats
from common.clock import Clock
from common.contract import Half
from common.limits import of_limit
from common.pair import source_hash
from common.result import Arm, PairResult, Row
from common.session import Session

FLOOR_TIMES = 3  # a time below this many floors of the clock is no time


def arm_result(
    seconds: list[list[float]],
    host_s: float,
    compile_s: float,
    cost: dict[str, float],
    limits: dict[str, Any],
    clock: str,
) -> Arm:
    """One arm as the record keeps it."""
    median = stats.overall_median(seconds)
    shares = [
        least / median if least is not None else None
        for least in (of_limit(cost, limits, which)[0] for which in ("measured", "datasheet"))
    ]
    return Arm(median, host_s if clock == "device" else None, shares[0], shares[1], compile_s, seconds)


def impossible(median_s: float, cost: dict[str, float], limits: dict[str, Any], cache_bytes: int | None) -> str:
    """Why no hardware like this can have done the work in that time; empty if it can. What fits in the cache need not have moved."""
    for key, amount in cost.items():
        peak = limits.get(key, {}).get("datasheet")
        if not peak or key in ("h2d_bytes", "d2h_bytes", "link_bytes"):
            continue
        least = (max(0.0, amount - (cache_bytes or 0)) if key == "dram_bytes" else amount) / peak
        if median_s < least:
            return f"{median_s * 1e6:.1f} us is below the physical limit: {amount:.3g} {key.replace('_', ' ')} take {least * 1e6:.1f} us at the datasheet's peak"
    return ""


def row(
    variant: str,
    versus: str,
    arms: dict[str, Arm],
    floor: float,
    clock_floor_s: float,
    precision: str,
    notes: list[str],
) -> Row:
    """The verdict of a variant against another arm, from samples that were found valid."""
    ratio = stats.estimate(arms[versus].seconds, arms[variant].seconds)
    verdict, reason = stats.verdict(ratio, floor)
    blocks = len(arms[variant].seconds)
    if not stats.sign_interval_rank(blocks):
        return Row(
            variant,
            versus,
            "unsure",
            f"only {blocks} blocks: an interval needs six",
            ratio.ratio,
            None,
            {},
            precision,
            notes,
        )
    if min(arms[variant].median_s, arms[versus].median_s) < FLOOR_TIMES * clock_floor_s:
        verdict, reason = (
            "unsure",
            f"shorter than {FLOOR_TIMES} x the clock's own floor of {clock_floor_s * 1e6:.2f} us",
        )
    libraries = {}
    for label in (label for label in arms if label.split("/")[0] == "library"):
        against = stats.estimate(arms[label].seconds, arms[variant].seconds)
        libraries[label] = {"ratio": against.ratio, "interval": (against.low, against.high)}
    return Row(variant, versus, verdict, reason, ratio.ratio, (ratio.low, ratio.high), libraries, precision, notes)


def notes_for(arm: Arm, cost: dict[str, float], cache_bytes: int | None) -> list[str]:
    """What a reader must know beside a time."""
    notes = []
    if arm.host_s is not None and arm.host_s > arm.median_s:
        notes.append(
            f"launch-bound: the host needs {arm.host_s * 1e6:.0f} us to issue {arm.median_s * 1e6:.0f} us of device work"
        )
    if cache_bytes and 0 < cost.get("dram_bytes", 0) <= cache_bytes:
        notes.append("fits in the cache: its limit is not memory bandwidth")
    return notes


def pair_result(session: Session, clock: Clock | None, cost: dict[str, float]) -> PairResult:
    """The pair's record: rows for every variant that was loaded, samples only of arms that may be believed."""
    job, cache = session.job, session.job.info.get("cache_bytes")
    arms = {}
    for arm in session.arms if clock else []:
        if not arm.seconds or {arm.label, "baseline"} & set(session.bad):
            continue
        result = arm_result(arm.seconds, arm.host_s, arm.compile_s, cost, job.limits, clock.name)
        reason = impossible(result.median_s, cost, job.limits, cache)
        if reason:
            session.out(arm.label, "invalid", reason)
        else:
            arms[arm.label] = result
    if "baseline" in session.bad:
        arms = {}
    floor = stats.noise_floor(arms["baseline"].seconds, arms["repeat"].seconds) if arms else None
    least, by = of_limit(cost, job.limits)
    rows = [
        row
        for half in job.pair.variants
        if half.label in job.labels
        for row in _rows(session, half, arms, floor, clock, cost)
    ]
    return PairResult(job.pair.chapter, job.pair.name, job.size, job.pair.sizes[job.size], source_hash(job.pair), rows, clock.name if clock and arms else "",
                      floor, cost, least, by, arms, session.orders, session.seeds, session.voided, session.spent_s)  # fmt: skip


def _rows(
    session: Session, half: Half, arms: dict[str, Arm], floor: float | None, clock: Clock | None, cost: dict[str, float]
) -> list[Row]:
    precision = half.constants.get("PRECISION", "")
    for guilty in ("baseline", half.label):
        if guilty in session.bad:
            verdict, reason = session.bad[guilty]
            return [
                Row(
                    half.label,
                    "baseline",
                    verdict,
                    reason if guilty == half.label else f"the baseline: {reason}",
                    precision=precision,
                )
            ]
    if half.label not in arms or clock is None or floor is None:
        return [Row(half.label, "baseline", "checked", precision=precision)]
    notes = notes_for(arms[half.label], cost, session.job.info.get("cache_bytes"))
    notes += [f"{label}: {reason}" for label, (_, reason) in session.bad.items() if label.startswith("library")]
    versus = half.constants.get("VERSUS")
    others = ["baseline"] + ([f"optimized/{versus}" if versus else "optimized"] if versus is not None else [])
    return [row(half.label, other, arms, floor, clock.floor_s, precision, notes) for other in others if other in arms]
