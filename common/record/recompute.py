"""What follows from samples, limits and amounts of work: medians, shares of a limit, speedups and verdicts."""

from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

from common import stats
from common.pairs.contract import LIBRARY_KINDS
from common.record.decision import decide
from common.record.outcome import Cause, Finding, Verdict
from common.record.result import CONTROL, Arm, PairResult, Row

FLOOR_TIMES = 3  # a time below this many floors of the clock is below its resolution


def limit_time(cost: dict[str, float], limits: dict[str, Any], which: str = "measured") -> tuple[float | None, str]:
    """(Least seconds for these amounts, the cost key that determines them); (None, "") if a needed peak is unknown."""
    peaks = {key: limits.get(key, {}).get(which) for key in cost}
    if not cost or not all(peaks.values()):
        return None, ""
    return max(((amount / peaks[key], key) for key, amount in cost.items()), key=itemgetter(0))


def with_shares(arm: Arm, cost: dict[str, float], limits: dict[str, Any]) -> Arm:
    """An arm with its median, and what it reaches of the limits of its work; `cost` is the baseline's."""
    median_s = stats.overall_median(arm.seconds)
    cost = arm.cost or cost
    (limit_s, by), (datasheet_s, _) = (limit_time(cost, limits, which) for which in ("measured", "datasheet"))
    share, datasheet_share = (least and least / median_s for least in (limit_s, datasheet_s))  # None without a peak
    return replace(arm, median_s=median_s, of_limit=share, of_datasheet=datasheet_share, limit_by=by)


def with_figures(pair: PairResult, limits: dict[str, Any]) -> PairResult:
    """A result with all figures of its arms and limits, without rows."""
    least_s, by = limit_time(pair.cost, limits)
    arms = {label: with_shares(arm, pair.cost, limits) for label, arm in pair.arms.items()}
    floor = stats.noise_floor(arms["baseline"].seconds, arms[CONTROL].seconds) if CONTROL in arms else None
    return replace(pair, arms=arms, noise_floor=floor, limit_s=least_s, limit_by=by)


def row(arms: Mapping[str, Arm], variant: str, versus: str, floor: float, precision: str = "") -> Row:
    """The conclusion about a variant against another arm, from the samples and the runs alone of both."""
    for arm in (arms[variant], arms[versus]):
        if is_short(arm):
            return Row(variant, versus, Verdict.TOO_SHORT, too_short(arm), precision=precision)
    seconds, blocks = arms[variant].seconds, len(arms[variant].seconds)
    estimate = stats.estimate(arms[versus].seconds, seconds)
    outcome = decide(estimate, blocks, floor, arms[versus].alone, arms[variant].alone)
    if not stats.sign_interval_rank(blocks):
        return Row(variant, versus, outcome.verdict, outcome.reason, estimate.ratio, precision=precision)
    libraries = {}
    for label, arm in arms.items():  # except those of another precision, which do less than this variant
        if label.split("/")[0] in LIBRARY_KINDS and not is_short(arm) and arm.precision in ("", precision):
            vs_library = stats.estimate(arm.seconds, seconds)
            extra = {"precision": arm.precision} if arm.precision else {}
            libraries[label] = {"ratio": vs_library.ratio, "interval": (vs_library.low, vs_library.high), **extra}
    interval = (estimate.low, estimate.high)
    return Row(variant, versus, outcome.verdict, outcome.reason, estimate.ratio, interval, libraries, precision)


def is_short(arm: Arm) -> bool:
    """Whether a time is below the clock's resolution."""
    return stats.overall_median(arm.seconds) < FLOOR_TIMES * (arm.floor_s or 0.0)


def too_short(arm: Arm) -> Finding:
    """That a time is below the clock's resolution."""
    return Finding(Cause.TOO_SHORT, {"factor": FLOOR_TIMES, "floor_us": (arm.floor_s or 0.0) * 1e6})
