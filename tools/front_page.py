"""What the README shows first: how near its limit every pair comes, as a picture, and a terminal's table.

Both are of one GPU, the one of which most is recorded, and of pairs that have not changed since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from statistics import median
from typing import Any

from common.pairs.pair import Pair, short
from common.record import files, store
from common.record.record_file import date_of
from common.record.result import PairResult
from common.show import pages, plot, tables
from common.show.layout import layout
from common.show.recorded_column import short_name
from common.show.summary import best_row

PICTURE = "limits.svg"
SAMPLE = ("coalescing", "preallocation")  # a gain, and a change that pays nothing
COLUMNS = 80  # of the terminal whose table is shown
LEFT, STEP, GAP, TITLE = 46, 15, 16, 72  # the scale, from pair to pair, more between chapters, the least for a title
TOP, DEPTH, NAMES = 60, 160, 130  # the line of the limit; from there to the lowest line; the names below
Shares = dict[str, tuple[float, float, str]]  # pair -> its baseline's share of the limit, its best version's, its label


@dataclass(frozen=True)
class Front:
    """A GPU's short name, its results at the default sizes by chapter, and how many pairs the course has."""

    device: str
    results: dict[str, list[PairResult]]
    pairs: int


def load(chapters: Mapping[str, Sequence[Pair]], problems: files.Problems | None = None) -> Front:
    """What is recorded of the chapters' pairs. `problems`: as in `store.chapter_records`."""
    every = [item for chapter in chapters for item in store.chapter_records(chapter, problems=problems)]
    every.sort(key=lambda item: date_of(item[1]), reverse=True)
    records = [record for _, record in files.on_one_gpu(every)]
    found = {}
    for chapter, pairs in chapters.items():
        is_current = store.current_filter(pairs)
        results = [result for record in records for result in record.pairs if result.chapter == chapter]
        own = {result.name: result for result in results if is_current(result)}
        found[chapter] = [own[pair.name] for pair in pairs if pair.name in own]
    device = short_name(records[0].environment["device"]["name"]) if records else ""
    return Front(device, found, sum(map(len, chapters.values())))


def picture(front: Front) -> str:
    """The picture as SVG; empty if nothing is recorded."""
    shares = {chapter: drawn for chapter, results in front.results.items() if (drawn := _shares(results))}
    if not shares:
        return ""
    least = min(min(first, best) for drawn in shares.values() for first, best, _ in drawn.values())
    powers = range(0, min(-1, floor(log10(least))) - 1, -1)
    groups, left = [], LEFT
    for chapter, drawn in shares.items():
        width = max(TITLE, STEP * len(drawn))
        start = left + (width - STEP * (len(drawn) - 1)) / 2
        bars = [_bar(name, start + STEP * place, drawn[name], powers[-1]) for place, name in enumerate(drawn)]
        groups.append({"title": f"chapter {chapter[2:]}", "middle": left + width / 2, "bars": bars})
        left += width + GAP
    return pages.page(
        "tools/templates/limits.svg.jinja", width=left - GAP, height=TOP + DEPTH + NAMES, left=LEFT, top=TOP,
        bottom=TOP + DEPTH, ink=plot.INK, colors=plot.SERIES[: len(groups)], groups=groups,
        ticks=[(f"{100 * 10.0**power:g} %", _height(10.0**power, powers[-1])) for power in powers],
        legend=f"share of the limit: the least time that the {front.device} would need / the time measured",
        label=f"Each pair's baseline and best version, in % of what the {front.device} could do at best",
    )  # fmt: skip


def _bar(name: str, x: float, shares: tuple[float, float, str], lowest: int) -> dict[str, Any]:
    first, best, label = shares
    title = f"{name}: baseline {tables.percent(first)}, {label} {tables.percent(best)}"
    return {"name": name, "x": x, "first": _height(first, lowest), "best": _height(best, lowest), "title": title}


def _height(share: float, lowest: int) -> float:
    """Where a share of the limit lies, on a logarithmic scale from 1 at TOP down to 10^lowest."""
    return round(TOP + DEPTH * log10(share) / lowest, 1)


def markdown(front: Front) -> str:
    """The picture in the README, and what it shows, in words."""
    drawn = [shares for results in front.results.values() for shares in _shares(results).values()]
    if not drawn:
        return ""
    first, best = (tables.percent(median(shares)) for shares in [*zip(*drawn, strict=True)][:2])
    text = (
        f"*{len(drawn)} of {front.pairs} pairs on {front.device}, on a logarithmic scale. Half of the baselines "
        f"reach {first} of the limit or less, half of the best versions {best} or more. The other pairs have no limit, "
        "are not recorded, or have changed since they were [measured](recorded).*"
    )
    return f"![How near its limit each pair comes on {front.device}]({PICTURE})\n\n{text}"


def sample(front: Front) -> str:
    """A few results as a terminal shows them."""
    found = {result.name: result for results in front.results.values() for result in results}
    entries = tables.table([found[name] for name in SAMPLE if name in found])
    lines = [line.plain.rstrip() for line in layout(tables.HEADINGS, entries, COLUMNS)]
    return "\n".join(["```text", front.device, *lines, "```"]) if entries else ""


def _shares(results: Sequence[PairResult]) -> Shares:
    """What baseline and fastest version reach of the limit: of their own where only other precisions were timed."""
    shares: Shares = {}
    for result in results:
        precisions = dict.fromkeys(["", *(row.precision for row in result.rows)])
        rows = [row for precision in precisions if (row := best_row(result, precision))]
        row = next((row for row in rows if not row.precision), max(rows, key=lambda row: row.ratio or 0, default=None))
        arms = [result.arms[label] for label in ("baseline", row.variant)] if row else []
        of_limit = [arm.of_limit for arm in arms if arm.of_limit]
        if row and len(of_limit) == 2:
            shares[result.name] = of_limit[0], of_limit[1], short(row.variant)
    return shares
