"""A figure of row widths: how wide a row may be until registers, L1 or L2 no longer hold the rows in flight."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from common.notebook.named_gpu import Gpu
from common.show.formats import binary
from common.show.plot import INK, SERIES, new_figure, style
from common.xray.occupancy import REGISTERS_PER_SM


def widest(gpu: Gpu, rows_an_sm: int, element_bytes: int = 4) -> dict[str, float]:
    """Columns of the widest row that registers, L1 and L2 hold, with this number of rows in flight per SM."""
    an_sm = rows_an_sm * element_bytes
    held = {"registers": 4 * REGISTERS_PER_SM / an_sm, "L1": gpu.l1_bytes / an_sm}
    return {**held, "L2": gpu.l2_bytes / (an_sm * gpu.sms)}


def row_widths(gpu: Gpu, rows_an_sm: int, element_bytes: int = 4, columns: Sequence[int] = ()) -> Figure:
    """Bytes of the rows in flight over their width, in one SM and in all, against the capacities.

    `columns`: widths to mark, such as a pair's sizes.
    """
    figure, axes = new_figure()
    limits, an_sm = widest(gpu, rows_an_sm, element_bytes), rows_an_sm * element_bytes
    width = np.geomspace(min([*limits.values(), *columns]) / 4, max([*limits.values(), *columns]) * 4, 50)
    for place, (name, scale) in enumerate({"in an SM": an_sm, f"in all {gpu.sms} SMs": an_sm * gpu.sms}.items()):
        axes.plot(width, width * scale, "-" if place else "--", color=SERIES[place], label=f"rows in flight {name}")
        axes.plot(columns, [column * scale for column in columns], linewidth=0, **style(place))
    axes.set(xscale="log", yscale="log", xlim=(width[0], width[-1]))
    _thresholds(axes, gpu, limits, width[-1])
    axes.set(xlabel="columns of a row", ylabel="bytes of the rows in flight")
    axes.set_title(f"{gpu.source}: {rows_an_sm} rows of {element_bytes}-byte values in flight per SM")
    for axis, written in ((axes.xaxis, "{:,.0f}".format), (axes.yaxis, binary)):
        axis.set_major_locator(LogLocator(base=4, numticks=20))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _, written=written: written(value)))
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _thresholds(axes: Any, gpu: Gpu, limits: dict[str, float], right: float) -> None:
    """Lines at each level's capacity, and at the number of columns that fills it."""
    held = {"registers": 4 * REGISTERS_PER_SM, "L1": gpu.l1_bytes, "L2": gpu.l2_bytes}
    along: Any = {"textcoords": "offset points", "fontsize": 8}
    for text, name in _labels(held).items():
        axes.axhline(held[name], color=INK, linewidth=0.8, linestyle=":")
        axes.axvline(limits[name], ymax=0.75, color=INK, linewidth=0.8, linestyle=":")
        axes.annotate(text, (right, held[name]), (4, 0), va="center", **along)
        below = (limits[name], 0.02), (2, 0), ("data", "axes fraction")
        axes.annotate(f"{limits[name]:,.0f} columns", *below, rotation=90, **along)


def _labels(held: dict[str, int]) -> dict[str, str]:
    """The labels of capacities (equal ones share one); label -> one of their names."""
    names = {size: [name for name, of in held.items() if of == size] for size in held.values()}
    of_sm = {size: " of an SM" * (alike != ["L2"]) for size, alike in names.items()}
    return {f"{', '.join(alike)}{of_sm[size]}: {binary(size)}": alike[0] for size, alike in names.items()}
