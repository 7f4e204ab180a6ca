"""The course's figures: ratios with intervals, rooflines, sweeps. The caller saves or shows the returned Figure.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. Markers differ too.
"""

from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from common.record.files import write_file
from common.record.result import CONTROL, PairResult, Record, Row
from common.show.formats import digits
from common.show.tables import origin, variant
from common.show.words import VERDICTS

SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
INK = "#7B7B7B"  # of text and lines: 4.2 times as light as a black page, and as dark as a white one
MARKERS = "osD^vP*X<>h"  # 11 markers and 7 colours: 77 series before a combination repeats
MOST_UPRIGHT = 6  # names of sizes that fit side by side


def new_figure(width: float = 8.0, height: float = 4.5) -> tuple[Figure, Any]:
    """A figure of `width` x `height` inches, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def timed_rows(pairs: list[PairResult]) -> list[tuple[PairResult, Row]]:
    """The rows that have a ratio and an interval."""
    return [(pair, row) for pair in pairs for row in pair.rows if row.ratio and row.interval]


def style(place: int) -> dict[str, Any]:
    """The marker and colour of series number `place`."""
    return {"marker": MARKERS[place % len(MARKERS)], "color": SERIES[place % len(SERIES)]}


def _intervals(rows: list[Row]) -> tuple[Any, Any, Any]:
    """Ratios, the ends of their intervals, and the distances from a ratio to both ends."""
    ratios = np.array([row.ratio for row in rows])
    ends = np.array([row.interval for row in rows]).reshape(-1, 2)
    return ratios, ends, [ratios - ends[:, 0], ends[:, 1] - ratios]


def ratio_bars(record: Record) -> Figure:
    """One bar per row: baseline time / variant time on a log axis, with the 95 % interval and a line at 1."""
    rows = timed_rows(record.pairs)
    figure, axes = new_figure(height=1.2 + 0.4 * max(1, len(rows)))
    labels = [pair.name if variant(row) == "optimized" else f"{pair.name} {variant(row)}" for pair, row in rows]
    ratios, ends, errors = _intervals([row for _, row in rows])
    places = np.arange(len(rows))
    axes.barh(places, ratios - 1, left=1, color=[VERDICTS[row.verdict].ink for _, row in rows], height=0.6)
    axes.errorbar(ratios, places, xerr=errors, fmt="o", color="black", markersize=3, capsize=3)
    for place, (_, row) in zip(places, rows, strict=True):
        right, text = (max(ends[place, 1], 1), place), f"{digits(ratios[place])}x {row.verdict}"
        axes.annotate(text, right, (6, 0), textcoords="offset points", va="center", fontsize=9)
    axes.axvline(1, color="black", linewidth=1)
    label = "speedup over what it is compared with (95 % interval)"
    axes.set(xscale="log", yticks=places, yticklabels=labels, xlabel=label, title=origin(record))
    plain_ticks(axes.xaxis)
    axes.set_xlim(min(0.5, ends.min(initial=1) / 1.5), max(2, ends.max(initial=1)) * 3)  # room for the words
    axes.invert_yaxis()
    return figure


def plain_ticks(axis: Any) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10 instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def roofline(
    points: list[tuple[str, float, float]], limits: dict[str, Any], title: str = "", flops_keys: Any = ("fp32_flops",)
) -> Figure:
    """Points (label, FLOP per byte, FLOP/s) under the roofs. Solid lines: measured. Dotted lines: the datasheet."""
    figure, axes = new_figure(height=5.5)
    intensity = np.logspace(-2, 4, 200)
    for color, key in zip(SERIES, [key for key in flops_keys if key in limits], strict=False):
        for which, line in (("measured", "-"), ("datasheet", ":")):
            memory, compute = _rate(limits["dram_bytes"], which), _rate(limits[key], which)
            if memory and compute:
                roof = np.minimum(intensity * memory, compute) / 1e9
                axes.plot(intensity, roof, line, color=color, label=f"{key.split('_')[0]} roof, {which}")
        ridge = _rate(limits[key], "measured") / _rate(limits["dram_bytes"], "measured")
        axes.axvline(ridge, color=color, linewidth=0.8, alpha=0.4)
        position: Any = {"xy": (ridge, 0.02), "xycoords": ("data", "axes fraction")}
        axes.annotate(f"ridge {digits(ridge)}", **position, fontsize=8, rotation=90, color=color)
    for i, (label, flop_per_byte, rate) in enumerate(points):
        axes.plot(flop_per_byte, rate / 1e9, linewidth=0, markeredgecolor="black", label=label, **style(i))
    axes.set(xlabel="arithmetic intensity (FLOP per byte of DRAM traffic)", ylabel="performance (GFLOP/s)")
    axes.set(xscale="log", yscale="log", title=title)
    axes.grid(which="both", alpha=0.2)
    axes.legend(fontsize=8)
    return figure


def _rate(limit: Any, which: str) -> float:
    """A rate from a Limit, or from its form in a record; 0 if it is missing."""
    return (limit.get(which) if isinstance(limit, dict) else getattr(limit, which)) or 0.0


def sweep(*records: Record) -> Figure:
    """Ratio over size, one panel per pair. The last panel: bandwidth over bytes, for pairs that memory limits.

    With records of several runs, the title has every date and each limit has a line per run.
    """
    pairs: dict[str, list[PairResult]] = {}
    for pair in [pair for record in records for pair in record.pairs]:
        pairs.setdefault(pair.name, []).append(pair)
    by_memory = [
        pair for results in pairs.values() for pair in results if pair.limit_by.startswith("dram") and pair.arms
    ]
    count = len(pairs) + bool(by_memory)
    figure = Figure(figsize=(8.0, 0.3 + 4.2 * max(1, count)), layout="constrained")
    panels = figure.subplots(max(1, count), squeeze=False)[:, 0]
    if by_memory:
        _bandwidths(panels[-1], by_memory, [record.limits["dram_bytes"] for record in records])
    for axes, results in zip(panels, pairs.values(), strict=False):
        _ratios(axes, results)
    panels[0].set_title(" / ".join(dict.fromkeys(map(origin, records))))
    return figure


@dataclass(frozen=True)
class Group:
    """Results of a pair. `axis`: the only argument in which they differ, which orders them; empty if there is no order.

    `label`: the type and other words that they share ("float16"), and the axis.
    """

    label: str
    axis: str
    pairs: list[PairResult]


def groups(pairs: list[PairResult]) -> list[Group]:
    """The groups of a pair's results. In each family come first the results that one number orders, then the rest.

    A family has the same type, operation and so on: all arguments that are not numbers. An argument that a size does
    not
    name has the pair's default, which a record does not contain. Such a size forms a family only with sizes like it.
    """
    families: dict[str, list[PairResult]] = {}
    for pair in pairs:
        words = [_word(name, value) for name, value in pair.sizes.items() if type(value) is not int]
        families.setdefault(", ".join(sorted(words)), []).append(pair)
    return [group for name, family in families.items() for group in _ordered_groups(name, family)]


def _word(name: str, value: Any) -> str:
    return f"{name} {value}" if isinstance(value, bool) else str(value)


def _ordered_groups(name: str, family: list[PairResult]) -> list[Group]:
    """The groups of a family, the longest ordered group first; the rest of the family has no order."""
    axes = dict.fromkeys(key for pair in family for key, value in pair.sizes.items() if type(value) is int)
    ordered, remaining = list[Group](), list(family)
    while remaining:
        lines = [(axis, line) for axis in axes for line in _lines(remaining, axis)]
        axis, line = max(lines, key=lambda item: len(item[1]), default=("", remaining))
        ordered.append(Group(f"{name}: {axis}".removeprefix(": ").removesuffix(": "), axis, line))
        remaining = [pair for pair in remaining if pair not in line]
    return ordered


def _lines(pairs: list[PairResult], axis: str) -> list[list[PairResult]]:
    """Lists of results that differ only in this number, in ascending order of it."""
    alike: dict[str, list[PairResult]] = {}
    for pair in [pair for pair in pairs if axis in pair.sizes]:
        rest = sorted((key, value) for key, value in pair.sizes.items() if key != axis)
        alike.setdefault(repr(rest), []).append(pair)
    lines = [sorted(line, key=lambda pair: pair.sizes[axis]) for line in alike.values()]
    return [line for line in lines if len({pair.sizes[axis] for pair in line}) > 1]


def _ratios(axes: Any, pairs: list[PairResult]) -> None:
    """Ratios of one pair: sizes of the same type and shape side by side. A line connects ordered sizes."""
    size_groups = groups(pairs)
    ends = [0, *accumulate(len(group.pairs) for group in size_groups)]
    place = {pair.size: number for number, pair in enumerate(pair for group in size_groups for pair in group.pairs)}
    rows = [(pair, row) for pair, row in timed_rows(pairs) if row.versus == "baseline"]
    for i, label in enumerate(dict.fromkeys(row.variant for _, row in rows)):
        points = [(place[pair.size], row) for pair, row in rows if row.variant == label]
        points.sort(key=lambda point: point[0])
        ratios, _, errors = _intervals([row for _, row in points])
        name = f"{pairs[0].name}{label.replace('optimized', '').replace('/', ' ')}"
        axes.errorbar([x for x, _ in points], ratios, yerr=errors, capsize=3, label=name, linestyle="none", **style(i))
        for group, (begin, end) in zip(size_groups, pairwise(ends), strict=True):
            line = [(x, row.ratio) for x, row in points if group.axis and begin <= x < end]
            axes.plot([x for x, _ in line], [ratio for _, ratio in line], color=style(i)["color"], linewidth=1)
    _bands(axes, size_groups, ends)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(place)), list(place))
    if len(place) > MOST_UPRIGHT:
        axes.tick_params("x", labelrotation=90, labelsize=7)
    axes.set(yscale="log", xlabel="size", ylabel="speedup over the baseline")
    plain_ticks(axes.yaxis)
    axes.legend(fontsize=8)


def _bands(axes: Any, size_groups: list[Group], ends: list[int]) -> None:
    """Colour every second group grey and write its label above."""
    if len(size_groups) > 1:
        for begin, end in [*pairwise(ends)][1::2]:
            axes.axvspan(begin - 0.5, end - 0.5, color="black", alpha=0.06, linewidth=0)
        above = axes.secondary_xaxis("top")
        middles = [(begin + end - 1) / 2 for begin, end in pairwise(ends)]
        above.set_xticks(middles, [group.label for group in size_groups], fontsize=7, rotation=45, ha="left")
        above.tick_params(length=0)


def _bandwidths(axes: Any, pairs: list[PairResult], limits: list[dict[str, Any]]) -> None:
    """Useful minimum of bytes / time over these bytes, for every arm except the A/A control.

    Points without lines: two shapes or types with equally many bytes are different work.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    for pair in pairs:
        size = pair.cost[pair.limit_by]
        for label, arm in pair.arms.items():
            if label != CONTROL:
                curves.setdefault(f"{pair.name} {label}", []).append((size / 1e6, size / arm.median_s / 1e9))
    for i, (label, points) in enumerate(curves.items()):
        axes.plot(*zip(*sorted(points), strict=True), label=label, linewidth=0, alpha=0.8, **style(i))
    for which, line in (("measured", "-"), ("datasheet", ":")):
        for number, peak in enumerate(filter(None, dict.fromkeys(_rate(limit, which) for limit in limits))):
            label = "_" * bool(number) + f"limit, {which}"  # matplotlib omits a label with a leading _
            axes.axhline(peak / 1e9, color="black", linewidth=1, linestyle=line, label=label)
    axes.set(xscale="log", yscale="log", xlabel="bytes that must be moved (MB)", ylabel="bandwidth (GB/s)")
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)
    axes.grid(which="both", alpha=0.2)
    axes.legend(fontsize=8)


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the file's suffix decides the format. Raises RecordError."""
    write_file(path, lambda file: figure.savefig(file, format=path.suffix.removeprefix("."), dpi=150))
