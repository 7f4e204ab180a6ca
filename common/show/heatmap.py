"""Heat maps: the gain of a variant in each cell of a grid, if a pair was measured over two of its arguments.

One row of two maps for each pair. Left: the speedup of its best variant over the fastest library of the cell (over the
baseline if no cell has a library). Right: the peak memory of a call, as a ratio to the same library's or baseline's.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from common.record.result import PairResult, Record
from common.show.formats import digits
from common.show.plot import INK, new_figure, ratio_bars, sweep
from common.show.summary import fastest_library
from common.show.tables import origin

LEAST = 4  # cells: two by two
Place = tuple[int, int]  # of a cell: its row's value, its column's


@dataclass(frozen=True)
class Grid:
    """Results of one pair at every combination of two arguments: `cells[row value, column value]`.

    `name`: the pair's name, and what its sizes share after their class ("sgp 2d" of "sweep/2d/...").
    """

    name: str
    arguments: tuple[str, str]
    values: tuple[list[int], list[int]]
    cells: dict[Place, PairResult]


def grids(record: Record) -> list[Grid]:
    """The grids of a record: sizes of a pair that share their name up to the last "/". A grid lacks no cell."""
    groups: dict[tuple[str, str, str], list[PairResult]] = {}
    for pair in record.pairs:
        groups.setdefault((pair.chapter, pair.name, pair.size.rpartition("/")[0]), []).append(pair)
    return [grid for (_, _, group), pairs in groups.items() if len(pairs) >= LEAST and (grid := _grid(pairs, group))]


def _grid(pairs: list[PairResult], group: str) -> Grid | None:
    shared = set.intersection(*(set(pair.sizes) for pair in pairs))
    varied = [name for name in pairs[0].sizes if name in shared and len({repr(pair.sizes[name]) for pair in pairs}) > 1]
    if len(varied) != 2 or not all(type(pair.sizes[name]) is int for pair in pairs for name in varied):
        return None
    row, column = varied
    rows, columns = (sorted({pair.sizes[name] for pair in pairs}) for name in varied)
    cells = {(pair.sizes[row], pair.sizes[column]): pair for pair in pairs}
    if not len(cells) == len(pairs) == len(rows) * len(columns):
        return None
    name = f"{pairs[0].name} {group.partition('/')[2]}".strip()
    return Grid(name, (row, column), (rows, columns), cells)


def draw(all_grids: list[Grid], record: Record) -> Figure:
    """A figure with one row for each grid: speedup on the left, memory on the right."""
    figure, panels = new_figure(9.0, 0.4 + 3.0 * len(all_grids), len(all_grids), 2)
    left_out = len(record.pairs) - sum(len(grid.cells) for grid in all_grids)
    figure.suptitle(origin(record) + f" (not drawn: {left_out} results of other sizes)" * bool(left_out))
    for (left, right), grid in zip(panels, all_grids, strict=True):
        label = _best(grid)
        ratios, other = _ratios(grid, label)
        speed = {place: ratio for place, (ratio, _) in ratios.items()}
        memory = {place: _memory(grid.cells[place], label, versus) for place, (_, versus) in ratios.items()}
        name = f"{grid.name} {label.replace('optimized', '').strip('/')}".strip()
        title = f"{name}: time of the {other} / its own"
        _draw_map(left, grid, speed, title, "BrBG", lambda value: f"{digits(value)}x")
        _draw_map(right, grid, memory, f"its peak of memory / the {other}'s", "BrBG_r", lambda value: f"{value:.2f}")
    return figure


def _best(grid: Grid) -> str:
    """The label of the variant with the least geometric mean of times, of those that were timed in the most cells."""
    arms = [pair.arms for pair in grid.cells.values()]
    labels = {label for candidates in arms for label in candidates if label.startswith("optimized")}
    times = {label: [candidates[label].median_s for candidates in arms if label in candidates] for label in labels}
    most = max(map(len, times.values()), default=0)
    means = [(geometric_mean(medians), label) for label, medians in times.items() if most and len(medians) == most]
    return min(means, default=(0.0, ""))[1]


def _ratios(grid: Grid, label: str) -> tuple[dict[Place, tuple[float, str]], str]:
    """For each cell the variant's speedup and the arm that it is over; then what these arms are, equal in all cells."""
    versions, cells = (label, "baseline"), grid.cells.items()
    rows = [(place, pair, row) for place, pair in cells for row in pair.rows if (row.variant, row.versus) == versions]
    if libraries := {place: fastest for place, pair, row in rows if (fastest := fastest_library(pair, row))}:
        return libraries, "fastest library"
    return {place: (row.ratio, "baseline") for place, _, row in rows if row.ratio}, "baseline"


def _memory(pair: PairResult, label: str, other: str) -> float | None:
    own, others = (getattr(pair.arms.get(which), "peak_bytes", None) for which in (label, other))
    return own / others if own is not None and others else None


def _draw_map(axes: Any, grid: Grid, cells: Mapping[Place, float | None], title: str, colors: str, text: Any) -> None:
    """Draw one map. The colours are logarithmic with 1 in the middle; a cell without a figure stays empty."""
    rows, columns = grid.values
    table = np.array([[cells.get((row, column)) or np.nan for column in columns] for row in rows], dtype=float)
    span = np.nanmax(np.abs(np.log2(table)), initial=0.5) if np.isfinite(table).any() else 0.5
    axes.imshow(np.log2(table), cmap=colors, vmin=-span, vmax=span, aspect="auto", origin="lower")
    for (i, j), value in np.ndenumerate(table):
        color = "white" if abs(np.log2(value)) > 0.65 * span else "black"  # the colours are darkest at both ends
        label, color = (text(value), color) if np.isfinite(value) else ("none", INK)
        axes.text(j, i, label, ha="center", va="center", fontsize=9, color=color)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set(ylabel=grid.arguments[0], xlabel=grid.arguments[1])
    axes.set_title(title, fontsize=10)


def figures_for(record: Record) -> dict[str, Figure]:
    """The figures that suit a record, by name: heat maps of its grids; over several sizes one of each pair; or bars."""
    if all_grids := grids(record):
        return {"": draw(all_grids, record)}
    sizes = Counter((pair.chapter, pair.name) for pair in record.pairs)
    if max(sizes.values(), default=0) < 2:
        return {"": ratio_bars(record)}
    own = {key: [pair for pair in record.pairs if (pair.chapter, pair.name) == key] for key in sizes}
    return {"_".join(key) * (len(own) > 1): sweep(replace(record, pairs=pairs)) for key, pairs in own.items()}
