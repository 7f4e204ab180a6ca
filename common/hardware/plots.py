"""The sheet's curves: bandwidth and latency by working set, transfers by size. The caller saves or shows them."""

import re

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from common.hardware.sheet import Pair, Sheet
from common.show.formats import binary
from common.show.plot import new_figure, plain_ticks, style
from common.show.tables import origin


def figures(sheet: Sheet) -> dict[str, Figure]:
    """Name -> figure, for everything that the sheet contains."""
    drawings = {"bandwidth": ladder, "latency": latency, "transfers": transfers}
    return {name: draw(sheet) for name, draw in drawings.items() if getattr(sheet, name)}


def ladder(sheet: Sheet) -> Figure:
    """Bandwidth over working set; a line marks the capacity of each cache."""
    return _by_bytes(sheet, sheet.bandwidth, "working set", "bandwidth (GB/s)", has_caches=True)


def latency(sheet: Sheet) -> Figure:
    """Latency over working set in SM cycles; the axis at the right is in ns, at the clock of the largest set."""
    curve = {"": [[size, 1e9 * cycles] for size, cycles, _ in sheet.latency]}
    figure = _by_bytes(sheet, curve, "working set", "latency of one load (SM cycles)", has_caches=True)
    (axes,), (_, cycles, seconds) = figure.axes, sheet.latency[-1]
    axes.set(yscale="linear", ylim=(0, None))
    ghz = 1e-9 * cycles / seconds
    scales = (lambda count: count / ghz, lambda ns: ns * ghz)
    axes.secondary_yaxis("right", functions=scales).set_ylabel(f"ns, at {ghz:.2f} GHz")
    return figure


def transfers(sheet: Sheet) -> Figure:
    """Bandwidth of transfers over their size."""
    return _by_bytes(sheet, sheet.transfers, "bytes transferred at once", "bandwidth (GB/s)")


def _by_bytes(sheet: Sheet, curves: dict[str, list[Pair]], what: str, unit: str, has_caches: bool = False) -> Figure:
    """Curves of [bytes, 1e9 units] on logarithmic axes, with a line at the size of each cache if `has_caches`."""
    figure, axes = new_figure()
    for place, (label, points) in enumerate(curves.items()):
        sizes, values = zip(*points, strict=True)
        axes.plot(sizes, [value / 1e9 for value in values], markersize=4, label=label, **style(place))
    facts = [(re.match(r"L\d\w*", fact.name), fact) for fact in sheet.facts if has_caches]
    caches = [(name[0], float(fact.value)) for name, fact in facts if name]  # a longer label would cross the curves
    for name, size in caches:
        axes.axvline(size, color="black", linewidth=0.8, linestyle=":")
        text, where = f" {name}: {binary(size)}", axes.get_xaxis_transform()
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
        axes.text(size, 0.02, text, fontsize=7, rotation=90, transform=where, bbox=box)
    axes.set(yscale="log", ylabel=unit, title=origin(sheet), xlabel=what)
    plain_ticks(axes.yaxis)
    if len(curves) > 1:
        axes.legend(fontsize=8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axes.xaxis.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: binary(value))
    axes.tick_params("x", rotation=45)
    axes.grid(alpha=0.2)
    return figure
