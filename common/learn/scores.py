"""How good predictions were: how far off, and whether a range was as sure as it said."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from common.show.formats import digits

ALPHA = 0.10  # a range is to hold nine figures of ten
PLAIN = 1.1  # up to this factor a share is plain; above it "50% too low" could be read as a half or as two thirds
FEWEST = 20  # predictions, before a word is said about how sure they were
RARE = 0.05  # a hit rate that honest ranges would have so seldom is called too narrow, or too wide


@dataclass(frozen=True)
class Scored:
    """A range and the figure that it was for; `worst`: the factor by which the figure lies outside (1: inside)."""

    of: str
    low: float
    high: float
    found: float

    @property
    def hit(self) -> bool:
        return self.low <= self.found <= self.high

    @property
    def worst(self) -> float:
        return max(self.low / self.found, self.found / self.high, 1.0)

    @property
    def score(self) -> float:
        """The interval score of ln(ratio): the width, and 2 / alpha times what the range misses. Lower is better."""
        return math.log(self.high / self.low) + 2 / ALPHA * math.log(self.worst)


def off(said: float, found: float) -> str:
    """How far a figure is from the one that was found: `6% too high`, `1.82 times too low`."""
    if said <= 0 or found <= 0:
        return "right" if said == found else "wrong"
    factor, side = max(said / found, found / said), "high" if said > found else "low"
    if factor < 1.005:
        return "right" if said == found else f"right to {factor - 1:.1%}"
    if factor < PLAIN:
        return f"{abs(said / found - 1):.0%} too {side}"
    return f"{digits(factor)} times too {side}"


def sureness(scored: Sequence[Scored]) -> str:
    """Hits of n, and what they say of the ranges by an exact binomial test; nothing is concluded of few."""
    hits, n = sum(each.hit for each in scored), len(scored)
    text = f"{hits} of {n} ranges hold the figure; nine of ten should"
    if n < FEWEST:
        return f"{text}. Nothing is concluded from fewer than {FEWEST}."
    at_most = sum(math.comb(n, k) * (1 - ALPHA) ** k * ALPHA ** (n - k) for k in range(hits + 1))
    at_least = sum(math.comb(n, k) * (1 - ALPHA) ** k * ALPHA ** (n - k) for k in range(hits, n + 1))
    if at_most < RARE:
        return f"{text}. Your ranges are too narrow."
    return f"{text}. Your ranges are too wide." if at_least < RARE else f"{text}. That fits."
