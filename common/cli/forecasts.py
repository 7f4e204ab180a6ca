"""What the reader predicted, in exercises and notebooks, beside what was found: lines for `learn.py progress`."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from typing import Any

from common.learn.exercise import Exercise
from common.learn.forecast_score import ScoredForecast, compare_forecasters, hit_rate_interval, number, sureness
from common.record.files import on_one_gpu
from common.record.record_file import combine_records
from common.record.store import chapter_records
from common.show.formats import digits

SURPRISES = 3
ROUNDED = 1.1  # a figure that is off by a smaller factor was rounded, and surprises nobody
COUNTS, OTHER, ARITHMETIC = "counts", "other", "arithmetic"


def lines(exercises: Sequence[Exercise], predictions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Locked predictions and revisions apart: ranges that hold their figure, scores, the largest surprises."""
    pairs = _pairs(exercises)
    for title, is_locked in (("predictions", True), ("revisions", False)):
        forecasts = [_score(event, pairs) for event in predictions if event["locked"] is is_locked]
        yield from _forecast_lines(title, [forecast for forecast in forecasts if forecast])


def _forecast_lines(title: str, forecasts: Sequence[ScoredForecast]) -> Iterator[str]:
    ranges = [forecast for forecast in forecasts if forecast.is_range]
    numbers = [forecast for forecast in forecasts if not forecast.is_range]
    if ranges:
        yield f"{title}: {sureness(ranges)}"
        yield f"  by resource: {_hits_by_group(ranges, [forecast.resource for forecast in ranges])}"
        chapters = [re.sub(r"(ch\d+).*", r"\1", forecast.of) for forecast in ranges]  # `ch4b/causal` is of ch4
        yield f"  by chapter: {_hits_by_group(ranges, chapters)}"
    if numbers:
        middle = digits(median(forecast.worst for forecast in numbers))
        yield f"{title} without a range: {len(numbers)}; half of them are within a factor of {middle}"
    for line in compare_forecasters(forecasts):
        yield f"  {line}"
    for forecast in sorted(forecasts, key=lambda forecast: -forecast.worst)[:SURPRISES]:
        if forecast.worst >= ROUNDED:
            ends = " to ".join(digits(end) for end in sorted({forecast.low, forecast.high}))
            yield f"  surprise: {forecast.of}: you said {ends}, it was {digits(forecast.figure)}"


def _hits_by_group(ranges: Sequence[ScoredForecast], names: Sequence[str]) -> str:
    """Of each group the hits, and the exact interval of their rate."""
    groups = defaultdict[str, list[bool]](list)
    for forecast, name in zip(ranges, names, strict=True):
        groups[name].append(forecast.hit)
    hit_counts = {name: (sum(hits), len(hits)) for name, hits in sorted(groups.items())}
    return ", ".join(f"{name} {hits} of {n} ({hit_rate_interval(hits, n)})" for name, (hits, n) in hit_counts.items())


def _score(event: Mapping[str, Any], pairs: Mapping[str, str]) -> ScoredForecast | None:
    """None of a word, of what was not found yet, and of figures that have no logarithm."""
    low, high = event.get("range") or [event.get("said")] * 2
    figure: Any = event.get("found")
    if not all(isinstance(value, int | float) and 0 < value < math.inf for value in (low, high, figure)):
        return None
    naive, by_bytes = number(event.get("naive")), number(event.get("bytes"))
    interval = event.get("interval")
    return ScoredForecast(event["of"], low, high, figure, naive, by_bytes, _resource(event, pairs), interval)


def _pairs(exercises: Sequence[Exercise]) -> dict[str, str]:
    """The pairs whose recorded figures exercises ask for: question -> `ch1/coalescing`."""
    tables = {f"{exercise.id} {name}": table for exercise in exercises for name, table in exercise.answers.items()}
    return {question: "/".join(table["figure"].split()[:2]) for question, table in tables.items() if "figure" in table}


def _resource(event: Mapping[str, Any], pairs: Mapping[str, str]) -> str:
    """What the pair waits for, as recorded on a GPU, if its times were asked for."""
    pair = pairs.get(event["of"]) or (event.get("pair") if "interval" in event else None)
    chapter, _, name = (pair or "").partition("/")
    return _limits(chapter).get(name, OTHER) if pair else COUNTS


@cache
def _limits(chapter: str) -> dict[str, str]:
    """Pair -> the resource that sets its limit, in a GPU's record. Of arithmetic without its type: a CPU has others."""
    on_gpu = [record for _, record in on_one_gpu(chapter_records(chapter, problems={}))]
    pairs = record.pairs if (record := combine_records(on_gpu)) else []
    return {pair.name: _resource_of(pair.limit_by) for pair in pairs}


def _resource_of(limit: str) -> str:
    """`dram` of `dram_read_bytes`, ARITHMETIC of `bf16_flops`, OTHER without a limit."""
    return ARITHMETIC if limit.endswith("_flops") else limit.removesuffix("_bytes").removesuffix("_read") or OTHER
