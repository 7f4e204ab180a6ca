"""The course's figures: ratios with intervals, rooflines, sweeps. The caller saves or shows the returned Figure.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish. Markers differ too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from common.pairs.pair import short
from common.record.files import write_file
from common.record.result import CONTROL, PairResult, Record, Row
from common.show.formats import digits
from common.show.tables import origin, variant
from common.show.words import VERDICTS

SERIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
INK = "#7B7B7B"  # of text and lines: as legible on a black page as on a white one
FAINT = "#7B7B7B40"  # an area in which nothing happens
MARKERS = "osD^vP*X<>h"  # 11 markers and 7 colours: 77 series before a combination repeats
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
STYLE: Any = {
    **dict.fromkeys(INKED, INK), "figure.facecolor": "none", "axes.facecolor": "none", "legend.frameon": False,
    "axes.spines.top": False, "axes.spines.right": False, "axes.prop_cycle": cycler(color=SERIES),
    "axes.titlesize": 10, "figure.titlesize": 10, "legend.fontsize": 8, "figure.dpi": 80,
    "svg.fonttype": "none", "svg.hashsalt": "speed of light",  # text stays text; the same figure is the same file
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],  # few: each text of an SVG names them all
}  # fmt: skip


def new_figure(width: float = 8.0, height: float = 4.5, *panels: int, **more: Any) -> tuple[Figure, Any]:
    """A figure of `width` x `height` inches, and its axes. `panels`: rows and columns of an array of axes.

    It is transparent. What is drawn from here on has the course's colours: they are matplotlib's defaults from now on.
    """
    matplotlib.rcParams.update(STYLE)
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(*panels, squeeze=not panels, **more)


def show_sharp() -> None:
    """Let a notebook show figures with twice the points a side. Call it before `%matplotlib inline`.

    As PNG: JupyterLab shows no SVG of a notebook that its reader has not run.
    """
    from matplotlib_inline.config import InlineBackend  # only a notebook has it

    backend: Any = InlineBackend.instance()
    backend.figure_formats, backend.print_figure_kwargs = {"retina"}, {"pil_kwargs": {"compress_level": 9}}


def legend(axes: Any) -> None:
    """A legend beside the data."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def color_legend(figure: Figure, colors: Mapping[str, str]) -> None:
    """A legend of areas, below them: name -> colour."""
    handles = [Patch(facecolor=color, edgecolor=INK, label=name) for name, color in colors.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


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
    axes.errorbar(ratios, places, xerr=errors, fmt="o", color=INK, markersize=3, capsize=3)
    for place, (_, row) in zip(places, rows, strict=True):
        right, text = (max(ends[place, 1], 1), place), f"{digits(ratios[place])}x {row.verdict}"
        axes.annotate(text, right, (6, 0), textcoords="offset points", va="center", fontsize=9)
    axes.axvline(1, color=INK, linewidth=1)
    label = "speedup over what it is compared with (95 % interval)"
    axes.set(xscale="log", yticks=places, yticklabels=labels, xlabel=label, title=origin(record))
    plain_ticks(axes.xaxis)
    axes.set_xlim(min(0.5, ends.min(initial=1) / 1.5), max(2, ends.max(initial=1)) * 3)  # room for the words
    axes.invert_yaxis()
    return figure


def plain_ticks(axis: Any, decades: bool = False) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, or with `decades` only, instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1,) if decades else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_formatter(NullFormatter())


def roofline(
    points: list[tuple[str, float, float]], limits: dict[str, Any], title: str = "", flops_keys: Any = ("fp32_flops",)
) -> Figure:
    """Points (label, FLOP per byte, FLOP/s) under the roofs. Solid lines: measured. Dotted lines: the datasheet."""
    figure, axes = new_figure(height=4.5)
    keys = [key for key in flops_keys if key in limits]
    ridges = {key: _rate(limits[key], "measured") / _rate(limits["dram_bytes"], "measured") for key in keys}
    ends = [*ridges.values(), *(flop_per_byte for _, flop_per_byte, _ in points)]
    intensity = np.geomspace(min(ends) / 5, max(ends) * 5, 200)
    for color, key in zip(SERIES, keys, strict=False):
        for which, line in (("measured", "-"), ("datasheet", ":")):
            memory, compute = _rate(limits["dram_bytes"], which), _rate(limits[key], which)
            if memory and compute:
                roof = np.minimum(intensity * memory, compute) / 1e9
                axes.plot(intensity, roof, line, color=color, label=f"{key.split('_')[0]} roof, {which}")
        axes.axvline(ridges[key], color=color, linewidth=0.8, alpha=0.4)
        position: Any = {"xy": (ridges[key], 0.02), "xycoords": ("data", "axes fraction")}
        axes.annotate(f"ridge {digits(ridges[key])}", **position, fontsize=8, rotation=90, color=color)
    sizes = np.linspace(11, 5, len(points))  # of points that lie on each other, all stay visible
    for i, ((label, flop_per_byte, rate), size) in enumerate(zip(points, sizes, strict=True)):
        look: Any = {"linewidth": 0, "markeredgecolor": INK, "markeredgewidth": 0.5, "markersize": size}
        axes.plot(flop_per_byte, rate / 1e9, label=label, **look, **style(i))
    axes.set(xlabel="arithmetic intensity (FLOP per byte of DRAM traffic)", ylabel="performance (GFLOP/s)")
    axes.set(xscale="log", yscale="log", title=title)
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis, decades=True)
    axes.grid(alpha=0.2)
    legend(axes)
    return figure


def _rate(limit: Any, which: str) -> float:
    """A rate from a Limit, or from its form in a record; 0 if it is missing."""
    return (limit.get(which) if isinstance(limit, dict) else getattr(limit, which)) or 0.0


def sweep(record: Record) -> Figure:
    """A row for each size of one pair: its speedups over the baseline, and at the right what is reached of the limit.

    Sizes of one type (all arguments that are no numbers) stand together, in the order of their least time.
    """
    families: dict[str, list[PairResult]] = {}
    for pair in record.pairs:
        families.setdefault(_family(pair), []).append(pair)
    pairs = [pair for family in families.values() for pair in sorted(family, key=_work)]
    found = dict.fromkeys(label for pair in pairs for label in pair.arms if label != CONTROL)
    labels = sorted(found, key=lambda label: label.startswith(("library", "yardstick")))  # after the versions
    looks = {label: style(place) for place, label in enumerate(labels)}
    places = dict(zip(looks, np.linspace(-0.3, 0.3, len(looks)), strict=True))  # within the row of a size
    has_limit = any(arm.of_limit for pair in pairs for arm in pair.arms.values())
    height = max(0.25, 0.045 * len(looks)) * len(pairs)
    figure, (panels,) = new_figure(9.0, 1.4 + height, 1, 1 + has_limit, sharey=True)
    rows = [(i, row) for i, pair in enumerate(pairs) for _, row in timed_rows([pair]) if row.versus == "baseline"]
    for label in dict.fromkeys(row.variant for _, row in rows):
        own = [(i, row) for i, row in rows if row.variant == label]
        ratios, _, errors = _intervals([row for _, row in own])
        where = [i + places.get(label, 0) for i, _ in own]
        panels[0].errorbar(ratios, where, xerr=errors, linestyle="none", capsize=2, label=label, **looks[label])
    panels[0].set(xscale="log", xlabel="speedup over the baseline (95 % interval)")
    panels[0].set_yticks(range(len(pairs)), [pair.size for pair in pairs])
    plain_ticks(panels[0].xaxis)
    _shares(panels[1:], pairs, looks, places)
    ends = np.cumsum([len(family) for family in families.values()])[:-1] - 0.5
    ends = ends[: len(ends) * (2 * len(families) < len(pairs))]  # no lines where most sizes have a type of their own
    for axes, mark in zip(panels, (1, 100), strict=False):
        axes.axvline(mark, color=INK, linewidth=1)
        axes.hlines(ends, 0, 1, color=INK, linewidth=0.8, transform=axes.get_yaxis_transform())
        axes.grid(alpha=0.2)
    panels[0].set_ylim(len(pairs) - 0.5, -0.5)
    handles = [Line2D([], [], linestyle="none", label=short(label), **look) for label, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    figure.suptitle(f"{pairs[0].name}: {origin(record)}")
    return figure


def _family(pair: PairResult) -> str:
    """What results must share to stand in one order: the type, the operation."""
    return repr(sorted((name, value) for name, value in pair.sizes.items() if type(value) is not int))


def _work(pair: PairResult) -> float:
    return pair.limit_s or sum(pair.cost.values())


def _shares(panels: Sequence[Any], pairs: list[PairResult], looks: dict[str, Any], places: dict[str, float]) -> None:
    """What each candidate reaches of its limit, in %, beside the row of its size."""
    for axes in panels:
        for label, look in looks.items():
            arms = [(i, pair.arms[label]) for i, pair in enumerate(pairs) if label in pair.arms]
            own = [(100 * arm.of_limit, i + places[label]) for i, arm in arms if arm.of_limit]
            axes.plot([x for x, _ in own], [y for _, y in own], linewidth=0, label=label, **look)
        axes.set(xlim=(0, None), xlabel="% of the limit")


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the file's suffix decides the format. Raises RecordError."""
    write_file(path, lambda file: figure.savefig(file, format=path.suffix.removeprefix("."), dpi=2 * figure.dpi))
