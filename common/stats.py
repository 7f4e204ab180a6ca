"""Ratio, interval and verdict: pure functions on arrays of samples.

Samples come in blocks (fresh inputs and allocations) of rounds (every arm once, in random order). Rounds of a block
share buffers, so they are not independent; blocks are. So medians are taken within blocks, and statistics over blocks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

Blocks = Sequence[Sequence[float]]  # seconds[block][round]

MARGIN = 0.02  # the least difference that counts: within it two times are the same
CONFIDENCE = 0.95
ALONE = 1.25  # a ratio from separate processes may differ by this factor without contradicting


@dataclass(frozen=True)
class Estimate:
    """A ratio of times (dimensionless) with its interval."""

    ratio: float
    low: float
    high: float


def block_log_ratios(numerator: Blocks, denominator: Blocks) -> np.ndarray:
    """One log-ratio per block: the median over its rounds. Both arms must have run in the same rounds (ValueError)."""
    if [len(block) for block in numerator] != [len(block) for block in denominator]:
        raise ValueError("the arms were not sampled in the same rounds")
    return _medians([np.log(a) - np.log(b) for a, b in zip(numerator, denominator, strict=True)])


def _medians(blocks: Sequence[Any]) -> np.ndarray:
    """The median of each block; of blocks of one length all at once, since NumPy takes 20 us for each."""
    if len({len(block) for block in blocks}) == 1:
        return np.median(np.asarray(blocks), axis=1)
    return np.array([np.median(block) for block in blocks])


def sign_interval_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """Largest k such that [k-th smallest, k-th largest] of n values covers the median with `confidence`; 0 if none
    does.

    The number of values below the median is Binomial(n, 1/2), so the interval misses it with 2 * P(B < k). Five values
    cannot give 95 % (93.8). Six can with their full range (96.9), twelve with the third value from either end (96.1).
    """
    missed = accumulate(2 * math.comb(n, k) / 2**n for k in range(n // 2))
    return sum(probability <= 1 - confidence for probability in missed)


def estimate(numerator: Blocks, denominator: Blocks) -> Estimate:
    """The ratio numerator / denominator: the median over blocks, with its order-statistic (sign) interval.

    Fewer than six blocks have no 95 % interval: it is then (0, inf). Raises ValueError without samples.
    """
    logs = np.sort(block_log_ratios(numerator, denominator))
    if logs.size == 0:
        raise ValueError("no samples")
    rank = sign_interval_rank(logs.size)
    low, high = (logs[rank - 1], logs[-rank]) if rank else (-math.inf, math.inf)
    return Estimate(math.exp(np.median(logs)), math.exp(low), math.exp(high))


def overall_median(seconds: Blocks) -> float:
    """The median over blocks of the median over a block's rounds."""
    return float(np.median(_medians(seconds)))


def spread(seconds: Blocks) -> float:
    """Half the interquartile range of all samples, relative to their overall median."""
    low, high = np.quantile(np.concatenate(seconds), (0.25, 0.75))
    return float(high - low) / 2 / overall_median(seconds)


def noise_floor(baseline: Blocks, control: Blocks) -> float:
    """The distance of the baseline's ratio to itself from 1: the difference that this machine's noise produces."""
    return abs(estimate(baseline, control).ratio - 1)


def verdict(ratio: Estimate, floor: float = 0.0) -> str:
    """faster, slower or same if the whole interval says so, else unsure. `floor`: of this machine's noise."""
    band = 1 + max(MARGIN, floor)
    if ratio.low > band:
        return "faster"
    if ratio.high < 1 / band:
        return "slower"
    return "same" if 1 / band <= ratio.low and ratio.high <= band else "unsure"


def holds_alone(verdict: str, ratio: float, versus: Blocks, variant: Blocks) -> bool:
    """Does a conclusion from samples taken together agree with samples of runs alone ([run][sample])?

    A ratio of runs alone is less precise (other processes, other memory). It agrees if any run shows half of the
    difference (in logarithms), or lies within the factor ALONE. Without runs alone there is no contradiction.
    """
    alone = [float(np.median(a) / np.median(b)) for a in versus for b in variant]
    near = max(ALONE, math.sqrt(max(ratio, 1 / ratio)))
    above, below = any(value >= ratio / near for value in alone), any(value <= ratio * near for value in alone)
    needed = {"faster": (above,), "slower": (below,), "same": (above, below)}.get(verdict, ())
    return not alone or all(needed)


def blocks_for(round_log_sd: float, rounds: int, half_width: float = 0.015, least: int = 12, most: int = 48) -> int:
    """The number of blocks that should bring the interval's half-width below `half_width`.

    `round_log_sd`: the standard deviation of one round's log-ratio. A median of m values has 1.25 / sqrt(m) of their
    sd, here twice (rounds, blocks); the interval is 1.96 times that.
    """
    block_sd = 1.25 * round_log_sd / math.sqrt(rounds)
    block_count = (1.96 * 1.25 * block_sd / half_width) ** 2
    return int(min(most, max(least, math.ceil(block_count))))
