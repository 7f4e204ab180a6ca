"""How good predictions were: how far off, and whether a range was as sure as it said."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from common.show.formats import digits
from common.stats import MARGIN

ALPHA = 0.10  # a range is to hold nine figures of ten
PLAIN = 1.1  # up to this factor a share is plain; above it "50% too low" could be read as a half or as two thirds
FEWEST = 20  # predictions, before a word is said about how sure they were
RARE = 0.05  # a hit rate that honest ranges would have so seldom is called too narrow, or too wide


def number(value: Any) -> float | None:
    """A finite number of any type: Python's, NumPy's, a tensor of one element. None of all else, and of a text."""
    if isinstance(value, bool | str | bytes):
        return None
    try:
        read = float(value)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):  # Decimal, int and torch have errors of their own
        return None
    return read if math.isfinite(read) else None


def ends(value: Any) -> tuple[float, float] | None:
    """The ends of a range (low, high) of numbers above 0; None of what is no such range."""
    numbers = [number(end) for end in value] if isinstance(value, tuple | list) else []
    match numbers:
        case [float(low), float(high)] if 0 < low <= high:
            return low, high
    return None


Interval = Sequence[float] | None


def misses(low: float, high: float, figure: float, interval: Interval = None) -> float:
    """The factor by which a range, or a number (`low` = `high`), lies outside of a figure; 1: it holds it.

    `interval`: of a figure that was measured. All that is within it and its margin may be the figure, so a range that
    meets it holds the figure, as a number within it is right.
    """
    least, most = (interval[0] / (1 + MARGIN), interval[1] * (1 + MARGIN)) if interval else (figure, figure)
    return max(low / most, least / high, 1.0)


@dataclass(frozen=True)
class ScoredForecast:
    """A range and the figure that it was for; `worst`: the factor by which the figure lies outside (1: inside).

    A number without a range has `low` = `high`. `naive`, `bytes`: what two forecasters say: the naive guess, and the
    ratio of bytes. `resource`: what the pair waits for (`dram`, `arithmetic`), or `counts` if the figure was counted.
    `interval`: of a figure that was measured.
    """

    of: str
    low: float
    high: float
    figure: float
    naive: float | None = None
    bytes: float | None = None
    resource: str = ""
    interval: Interval = None

    @property
    def is_range(self) -> bool:
        return self.low < self.high

    @property
    def hit(self) -> bool:
        return self.worst == 1.0

    @property
    def worst(self) -> float:
        return misses(self.low, self.high, self.figure, self.interval)

    @property
    def score(self) -> float:
        """The interval score of ln(ratio): the width, and 2 / alpha times what the range misses. Lower is better.

        From Gneiting and Raftery, Strictly Proper Scoring Rules, 2007, section 6.2.
        """
        return math.log(self.high / self.low) + 2 / ALPHA * math.log(self.worst)


def off(prediction: float, figure: float, is_exact: bool = False) -> str:
    """How far a figure is from the one that was found: `6% too high`, `1.82 times too low`.

    `is_exact`: only the figure itself is right, as of a count; of one that is nearly it, how many are too many.
    """
    if prediction <= 0 or figure <= 0:
        return "right" if prediction == figure else "wrong"
    factor, side = max(prediction / figure, figure / prediction), "high" if prediction > figure else "low"
    if factor < 1.005 and is_exact and prediction != figure:
        return f"{abs(prediction - figure):,.4g} too {side}"
    if factor < 1.005:
        return "right" if prediction == figure else f"right to {factor - 1:.1%}"
    if factor < PLAIN:
        return f"{abs(prediction / figure - 1):.0%} too {side}"
    return f"{digits(factor)} times too {side}"


def sureness(scored: Sequence[ScoredForecast]) -> str:
    """Hits of n, and what they say of the ranges by an exact binomial test; nothing is concluded of few."""
    hits, n = sum(forecast.hit for forecast in scored), len(scored)
    text = (
        f"{hits} of {n} ranges hold the figure ({hit_rate_interval(hits, n)} with 95 % confidence); nine of ten should"
    )
    if n < FEWEST:
        return f"{text}. Nothing is concluded from fewer than {FEWEST}."
    if 1 - _at_least(hits + 1, n, 1 - ALPHA) < RARE:
        return f"{text}. Your ranges are too narrow."
    return f"{text}. Your ranges are too wide." if _at_least(hits, n, 1 - ALPHA) < RARE else f"{text}. That fits."


def hit_rate_interval(hits: int, n: int) -> str:
    """The exact 95 % interval of a rate (Clopper and Pearson, 1934): `55% to 100%`."""
    return f"{_rate(hits, n, 0.025):.0%} to {_rate(hits + 1, n, 0.975):.0%}"


def _rate(hits: int, n: int, chance: float) -> float:
    """The rate at which at least so many hits of n have this chance."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(hits, n, middle) < chance else (low, middle)
    return low


def _at_least(hits: int, n: int, rate: float) -> float:
    return sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(hits, n + 1))


def compare_forecasters(scored: Sequence[ScoredForecast]) -> list[str]:
    """The mean interval score beside that of each forecaster, over the figures of which both have said something."""
    lines = []
    for name, says in (("the naive guess", "naive"), ("the ratio of bytes", "bytes")):
        both = [(forecast, guess) for forecast in scored if (guess := getattr(forecast, says)) and guess > 0]
        if both:
            yours = fmean(forecast.score for forecast, _ in both)
            others = fmean(replace(forecast, low=guess, high=guess).score for forecast, guess in both)
            scores = f"{digits(yours)}; {name}: {digits(others)}"
            lines.append(f"interval score, mean of {len(both)} (lower is better): yours {scores}")
    return lines
