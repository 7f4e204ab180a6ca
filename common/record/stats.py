"""Ratio, interval and verdict: pure functions on arrays of samples.

Samples come in blocks (fresh inputs and allocations) of rounds (every arm once, in random order). Rounds of a block
share their buffers, so they are not independent; blocks are. Hence medians within blocks, then statistics over them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

Blocks = Sequence[Sequence[float]]  # seconds[block][round]

MARGIN = 0.02  # what we call a difference at all; the band in which two times are the same
CONFIDENCE = 0.95
ALONE = 1.25  # times that a ratio may be another in processes of their own, and says nothing


@dataclass(frozen=True)
class Estimate:
    """A ratio of times (dimensionless) with its interval."""

    ratio: float
    low: float
    high: float


def block_log_ratios(numerator: Blocks, denominator: Blocks) -> np.ndarray:
    """One log-ratio a block: the median over its rounds. Both arms must have run in the same rounds."""
    if [len(block) for block in numerator] != [len(block) for block in denominator]:
        raise ValueError("the arms were not sampled in the same rounds")
    return np.array([np.median(np.log(a) - np.log(b)) for a, b in zip(numerator, denominator, strict=True)])


def sign_interval_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """Largest k such that [k-th smallest, k-th largest] of n covers the median with `confidence`; 0 if none does.

    The number of values below the median is Binomial(n, 1/2), so the interval misses with 2 * P(B < k). Five values
    cannot give 95 % (93.8); six can with their full range (96.9); twelve with the third from either end (96.1).
    """
    missed = accumulate(2 * math.comb(n, k) / 2**n for k in range(n // 2))
    return sum(each <= 1 - confidence for each in missed)


def estimate(numerator: Blocks, denominator: Blocks) -> Estimate:
    """The ratio numerator / denominator: median over blocks, order-statistic (sign) interval over blocks.

    With fewer than six blocks no such interval has 95 %: it is then unbounded, (0, inf).
    """
    logs = np.sort(block_log_ratios(numerator, denominator))
    if logs.size == 0:
        raise ValueError("no samples")
    rank = sign_interval_rank(logs.size)
    low, high = (logs[rank - 1], logs[-rank]) if rank else (-math.inf, math.inf)
    return Estimate(math.exp(np.median(logs)), math.exp(low), math.exp(high))


def overall_median(seconds: Blocks) -> float:
    """The median over blocks of the median over a block's rounds."""
    return float(np.median([np.median(block) for block in seconds]))


def spread(seconds: Blocks) -> float:
    """Half the interquartile range of all samples, as a part of their overall median (dimensionless)."""
    low, high = np.quantile(np.concatenate(seconds), (0.25, 0.75))
    return float(high - low) / 2 / overall_median(seconds)


def noise_floor(baseline: Blocks, control: Blocks) -> float:
    """How far the ratio of the baseline to itself lies from 1: what this machine calls a difference today."""
    return abs(estimate(baseline, control).ratio - 1)


def verdict(ratio: Estimate, floor: float = 0.0) -> tuple[str, str]:
    """(verdict, reason): faster, slower or same if the whole interval says so, else unsure and what would settle it."""
    band = 1 + max(MARGIN, floor)
    if ratio.low > band:
        return "faster", ""
    if ratio.high < 1 / band:
        return "slower", ""
    if 1 / band <= ratio.low and ratio.high <= band:
        return "same", ""
    if floor > MARGIN:
        return "unsure", f"the baseline differs from itself by {floor:.1%}: measure on a quieter machine"
    return "unsure", f"the interval crosses the {MARGIN:.0%} band: more blocks or a quieter machine would settle it"


def holds_alone(verdict: str, ratio: float, versus: Blocks, mine: Blocks) -> bool:
    """Does a conclusion from samples taken together agree with those of runs alone, [run][sample]?

    Alone a ratio is coarse (another process, other memory): half of the difference (in logarithms), or all but ALONE
    of it, is enough, in any of the runs. Without runs there is nothing that could contradict.
    """
    alone = [float(np.median(a) / np.median(b)) for a in versus for b in mine]
    near = max(ALONE, math.sqrt(max(ratio, 1 / ratio)))
    above, below = (
        any(holds) for holds in ([one >= ratio / near for one in alone], [one <= ratio * near for one in alone])
    )
    needed = {"faster": (above,), "slower": (below,), "same": (above, below)}.get(verdict, ())
    return not alone or all(needed)


_BESIDE = "beside the others "


def contradiction(ratio: float, versus: Blocks, mine: Blocks) -> str:
    """Both ratios in words: beside the others, and of the last run alone."""
    return f"{_BESIDE}{ratio:.3g}x, alone {np.median(versus[-1]) / np.median(mine[-1]):.3g}x"


def is_contradiction(reason: str) -> bool:
    """Is this why a conclusion is unsure: that the runs alone do not bear it out?"""
    return reason.startswith(_BESIDE)


def blocks_for(round_log_sd: float, rounds: int, half_width: float = 0.015, least: int = 12, most: int = 48) -> int:
    """How many blocks should bring the interval's half-width under `half_width`, given one round's sd of log-ratio.

    A median of m values has 1.25 / sqrt(m) of their sd, here twice over (rounds, blocks); the interval is 1.96 of it.
    """
    block_sd = 1.25 * round_log_sd / math.sqrt(rounds)
    wanted = (1.96 * 1.25 * block_sd / half_width) ** 2
    return int(min(most, max(least, math.ceil(wanted))))
