"""The sheet's curves: bandwidth and latency by working set, transfers by size. The caller saves or shows them."""

import re

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from common.hardware.sheet import Pair, Sheet
from common.show.formats import binary
from common.show.plot import INK, legend, new_figure, plain_ticks, style
from common.show.tables import origin


def figures(sheet: Sheet) -> dict[str, Figure]:
    """Name -> figure, for everything that the sheet contains."""
    drawings = {"bandwidth": ladder, "latency": latency, "transfers": transfers}
    return {name: draw(sheet) for name, draw in drawings.items() if getattr(sheet, name)}


def ladder(sheet: Sheet) -> Figure:
    """Bandwidth over working set; a line marks the capacity of each cache."""
    return _by_bytes(sheet, sheet.bandwidth, "working set", "bandwidth (GB/s)", has_caches=True)


def latency(sheet: Sheet) -> Figure:
    """Latency over working set in SM cycles, with the clock of the largest set."""
    curve = {"": [[size, 1e9 * cycles] for size, cycles, _ in sheet.latency]}
    _, cycles, seconds = sheet.latency[-1]
    label = f"latency of one load (SM cycles of {1e9 * seconds / cycles:.2f} ns)"
    figure = _by_bytes(sheet, curve, "working set", label, has_caches=True)
    figure.axes[0].set(yscale="linear", ylim=(0, None))
    return figure


def transfers(sheet: Sheet) -> Figure:
    """Bandwidth of transfers over their size."""
    return _by_bytes(sheet, sheet.transfers, "bytes transferred at once", "bandwidth (GB/s)")


def _by_bytes(sheet: Sheet, curves: dict[str, list[Pair]], what: str, unit: str, has_caches: bool = False) -> Figure:
    """Curves of [bytes, 1e9 units] on logarithmic axes, with a line at the size of each cache if `has_caches`."""
    single = {label: points[0] for label, points in curves.items() if len(points) == 1}  # no curves: a panel beside
    count = 1 + bool(single)
    figure, (panels,) = new_figure(8.0, 4.5, 1, count, width_ratios=[3, 1][:count], sharey=True)
    axes = panels[0]
    for place, (label, points) in enumerate(curves.items()):
        if label not in single:
            sizes, values = zip(*points, strict=True)
            axes.plot(sizes, [value / 1e9 for value in values], markersize=4, label=label, **style(place))
        else:
            panels[1].plot(label, points[0][1] / 1e9, **style(place))
            panels[1].set_xlabel(f"at {binary(min(size for size, _ in single.values()))} or more")
    caches = [(fact.name, float(fact.value)) for fact in sheet.facts if has_caches and re.match(r"L\d", fact.name)]
    for name, size in caches:
        axes.axvline(size, color=INK, linewidth=0.8, linestyle=":")
        above = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axes.text(size, 1.0, f"{name.split()[0].strip(',')}: {binary(size)}", fontsize=8, **above)
    axes.set(yscale="log", ylabel=unit, xlabel=what)
    figure.suptitle(origin(sheet))
    plain_ticks(axes.yaxis)
    if len(curves) - len(single) > 1:
        legend(axes)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axes.xaxis.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: binary(value))
    for panel in panels:
        panel.tick_params("x", rotation=45)
        panel.grid(alpha=0.2)
    return figure
