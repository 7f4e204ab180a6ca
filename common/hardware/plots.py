"""The sheet's figures: bandwidth and latency by working set, transfers by size. The caller saves or shows them."""

import re
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from common.hardware.sheet import Sheet
from common.show.formats import binary
from common.show.plot import SERIES, new_figure, plain_ticks, style


def figures(sheet: Sheet) -> dict[str, Figure]:
    """Name -> figure, for everything that the sheet contains."""
    drawings = {"bandwidth": ladder, "latency": latency, "transfers": transfers}
    return {name: draw(sheet) for name, draw in drawings.items() if getattr(sheet, name)}


def ladder(sheet: Sheet) -> Figure:
    """Bandwidth over working set; a line marks the capacity of each cache."""
    figure, axes = new_figure()
    _rates(axes, sheet, sheet.bandwidth)
    _capacities(axes, sheet)
    _bytes_axis(axes, "working set")
    return figure


def latency(sheet: Sheet) -> Figure:
    """Latency over working set: SM cycles on the left axis, nanoseconds on the right."""
    figure, axes = new_figure()
    sizes, cycles, seconds = zip(*sheet.latency, strict=True)
    right = axes.twinx()
    for side, values, label, place in ((axes, cycles, "SM cycles", 0), (right, [1e9 * s for s in seconds], "ns", 1)):
        side.plot(sizes, values, markersize=4, label=label, **style(place))
        side.set_ylabel(f"latency of one load ({label})", color=SERIES[place])
        side.set_ylim(0, (1.1 + 0.2 * place) * max(values))  # at a constant clock the curves would overlap
    _capacities(axes, sheet)
    axes.set_title(_title(sheet))
    _bytes_axis(axes, "working set")
    return figure


def transfers(sheet: Sheet) -> Figure:
    """Bandwidth of transfers over their size."""
    figure, axes = new_figure()
    _rates(axes, sheet, sheet.transfers)
    _bytes_axis(axes, "bytes transferred at once")
    return figure


def _rates(axes: Axes, sheet: Sheet, curves: dict[str, list[list[float]]]) -> None:
    for i, (label, points) in enumerate(curves.items()):
        sizes, rates = zip(*points, strict=True)
        axes.plot(sizes, [rate / 1e9 for rate in rates], markersize=4, label=label, **style(i))
    axes.set(yscale="log", ylabel="bandwidth (GB/s)", title=_title(sheet))
    plain_ticks(axes.yaxis)
    axes.legend(fontsize=8)


def _capacities(axes: Axes, sheet: Sheet) -> None:
    """A line at the size of each cache among the facts."""
    for fact in sheet.facts:
        if re.match(r"L\d", fact["name"]):
            axes.axvline(fact["value"], color="black", linewidth=0.8, linestyle=":")
            where: Any = {"xytext": (2, 0), "xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
            text = f"{fact['name']}: {binary(fact['value'])}"
            axes.annotate(text, (fact["value"], 0.02), **where, fontsize=7, rotation=90)


def _bytes_axis(axes: Axes, what: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: binary(value)))
    axes.tick_params(axis="x", rotation=45)
    axes.set_xlabel(what)
    axes.grid(alpha=0.2)


def _title(sheet: Sheet) -> str:
    return f"{sheet.environment['device']['name']}, {sheet.environment['date'][:10]}"
