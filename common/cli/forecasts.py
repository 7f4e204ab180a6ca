"""What the reader predicted, in exercises and notebooks, beside what was found: lines for `learn.py progress`."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from typing import Any

from common.learn.exercise import Exercise
from common.learn.forecast_score import ScoredForecast, compare_forecasters, hit_rate_interval, sureness
from common.record.files import on_one_gpu
from common.record.record_file import combine_records
from common.record.store import chapter_records
from common.show.formats import digits

SURPRISES = 3
COUNTS, OTHER = "counts", "other"


def lines(known: Sequence[Exercise], predicted: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Locked predictions and revisions apart: ranges that hold their figure, scores, the largest surprises."""
    pairs = _pairs(known)
    for title, is_locked in (("predictions", True), ("revisions", False)):
        scored = [_scored(event, pairs) for event in predicted if event["locked"] is is_locked]
        yield from _told(title, [each for each in scored if each])


def _told(title: str, scored: Sequence[ScoredForecast]) -> Iterator[str]:
    ranges = [each for each in scored if each.is_range]
    numbers = [each for each in scored if not each.is_range]
    if ranges:
        yield f"{title}: {sureness(ranges)}"
        yield f"  by resource: {_by(ranges, [each.resource for each in ranges])}"
        chapters = [re.sub(r"(ch\d+).*", r"\1", each.of) for each in ranges]  # `ch4b/causal` is of ch4
        yield f"  by chapter: {_by(ranges, chapters)}"
    if numbers:
        middle = digits(median(each.worst for each in numbers))
        yield f"{title} without a range: {len(numbers)}; half of them are within a factor of {middle}"
    for line in compare_forecasters(scored):
        yield f"  {line}"
    for each in sorted(scored, key=lambda each: -each.worst)[:SURPRISES]:
        if not each.hit:
            said = " to ".join(digits(end) for end in sorted({each.low, each.high}))
            yield f"  surprise: {each.of}: you said {said}, it was {digits(each.figure)}"


def _by(ranges: Sequence[ScoredForecast], names: Sequence[str]) -> str:
    """Of each group the hits, and the exact interval of their rate."""
    groups = defaultdict[str, list[bool]](list)
    for each, name in zip(ranges, names, strict=True):
        groups[name].append(each.hit)
    counted = {name: (sum(hits), len(hits)) for name, hits in sorted(groups.items())}
    return ", ".join(f"{name} {hits} of {n} ({hit_rate_interval(hits, n)})" for name, (hits, n) in counted.items())


def _scored(event: Mapping[str, Any], pairs: Mapping[str, str]) -> ScoredForecast | None:
    """None of a word, of what was not found yet, and of figures that have no logarithm."""
    low, high = event.get("range") or [event.get("said")] * 2
    found: Any = event.get("found")
    naive = event.get("naive")
    if not all(isinstance(each, int | float) and 0 < each < math.inf for each in (low, high, found)):
        return None
    guess = naive if isinstance(naive, int | float) else None
    return ScoredForecast(event["of"], low, high, found, guess, event.get("bytes"), _resource(event, pairs))


def _pairs(known: Sequence[Exercise]) -> dict[str, str]:
    """The pairs whose recorded figures exercises ask for: question -> `ch1/coalescing`."""
    tables = {f"{each.id} {name}": table for each in known for name, table in each.answers.items()}
    return {of: "/".join(table["figure"].split()[:2]) for of, table in tables.items() if "figure" in table}


def _resource(event: Mapping[str, Any], pairs: Mapping[str, str]) -> str:
    """What the pair waits for, as recorded on a GPU, if its times were asked for."""
    pair = event.get("pair") if "interval" in event else pairs.get(event["of"])
    chapter, _, name = (pair or "").partition("/")
    return _limits(chapter).get(name, OTHER) if pair else COUNTS


@cache
def _limits(chapter: str) -> dict[str, str]:
    """Pair -> the resource that sets its limit, in a GPU's record."""
    on_gpu = [each for _, each in on_one_gpu(chapter_records(chapter, problems={}))]
    pairs = record.pairs if (record := combine_records(on_gpu)) else []
    return {pair.name: pair.limit_by.removesuffix("_bytes").removesuffix("_flops") or OTHER for pair in pairs}
