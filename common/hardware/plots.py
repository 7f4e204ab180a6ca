"""The sheet's figures: bandwidth and latency by working set, transfers by size. The caller saves or shows them."""

import re

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from common.hardware.sheet import Sheet
from common.show.formats import binary
from common.show.plot import SERIES, new_figure, plain_ticks, style
from common.show.tables import origin


def figures(sheet: Sheet) -> dict[str, Figure]:
    """Name -> figure, for everything that the sheet contains."""
    drawings = {"bandwidth": ladder, "latency": latency, "transfers": transfers}
    return {name: draw(sheet) for name, draw in drawings.items() if getattr(sheet, name)}


def ladder(sheet: Sheet) -> Figure:
    """Bandwidth over working set; a line marks the capacity of each cache."""
    figure = _rates(sheet, sheet.bandwidth, "working set")
    _capacities(figure.axes[0], sheet)
    return figure


def latency(sheet: Sheet) -> Figure:
    """Latency over working set: SM cycles on the left axis, nanoseconds on the right."""
    figure, axes = new_figure()
    right = axes.twinx()
    for side, unit, column, per, place in ((axes, "SM cycles", 1, 1, 0), (right, "ns", 2, 1e9, 1)):
        values = [point[column] * per for point in sheet.latency]
        side.plot([point[0] for point in sheet.latency], values, markersize=4, **style(place))
        side.set_ylabel(f"latency of one load ({unit})", color=SERIES[place])
        side.set_ylim(0, (1.1 + 0.2 * place) * max(values))  # at a constant clock the curves would overlap
    axes.set_title(origin(sheet))
    _bytes_axis(axes, "working set")
    _capacities(axes, sheet)
    return figure


def transfers(sheet: Sheet) -> Figure:
    """Bandwidth of transfers over their size."""
    return _rates(sheet, sheet.transfers, "bytes transferred at once")


def _rates(sheet: Sheet, curves: dict[str, list[list[float]]], what: str) -> Figure:
    figure, axes = new_figure()
    for i, (label, points) in enumerate(curves.items()):
        sizes, rates = zip(*points, strict=True)
        axes.plot(sizes, [rate / 1e9 for rate in rates], markersize=4, label=label, **style(i))
    axes.set(yscale="log", ylabel="bandwidth (GB/s)", title=origin(sheet))
    plain_ticks(axes.yaxis)
    axes.legend(fontsize=8)
    _bytes_axis(axes, what)
    return figure


def _capacities(axes: Axes, sheet: Sheet) -> None:
    """A line at the size of each cache among the facts."""
    for name, size in ((fact["name"], fact["value"]) for fact in sheet.facts if re.match(r"L\d", fact["name"])):
        axes.axvline(size, color="black", linewidth=0.8, linestyle=":")
        where = axes.get_xaxis_transform()
        axes.text(size, 0.02, f" {name}: {binary(size)}", fontsize=7, rotation=90, transform=where)


def _bytes_axis(axes: Axes, what: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axes.xaxis.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: binary(value))
    axes.tick_params("x", rotation=45)
    axes.set_xlabel(what)
    axes.grid(alpha=0.2)
