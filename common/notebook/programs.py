"""A figure of what one program of a launch touches: the elements that it loads and stores, and its masked lanes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from common.notebook.places import BEYOND, NOT_TOUCHED, runs, tile_map
from common.show.plot import SERIES, color_legend, new_figure
from common.traffic import Access

OUTSIDE, UNTOUCHED, LOADED, STORED, MASKED = range(5)
COLORS = ("none", "#E4E4E4", SERIES[5], SERIES[1], "#888888")
NAMES = {LOADED: "loaded", STORED: "stored", MASKED: "masked lane: does nothing", UNTOUCHED: "not touched"}
CELL, WIDEST = 0.27, 10.0  # inches: an element's side, unless all would be wider than that
LABELS = 400  # elements whose offsets are written into them, at most


def touched(accesses: Sequence[Access], tensor: torch.Tensor, program: int) -> NDArray[np.int64]:
    """What one program does to each element of a tensor on the CPU: LOADED, STORED or UNTOUCHED.

    A row for each of the tensor's, a vector being one row; further rows and columns where masked lanes would have been.
    """
    drawn = np.full(tensor.shape if tensor.dim() > 1 else (1, tensor.numel()), UNTOUCHED)
    begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
    for kind, code in {"load": LOADED, "store": STORED, "atomic": STORED}.items():
        own_accesses = [access for access in accesses if (access.program, access.kind) == (program, kind)]
        if any(begin <= int(access.addresses.min()) < end for access in own_accesses):
            programs = tile_map(own_accesses, tensor, kind)
            more = [(0, max(0, new - old)) for new, old in zip(programs.shape, drawn.shape, strict=True)]
            drawn = np.pad(drawn, more, constant_values=OUTSIDE)
            part = drawn[: programs.shape[0], : programs.shape[1]]
            part[programs == BEYOND] = MASKED
            part[(programs != BEYOND) & (programs != NOT_TOUCHED)] = code
    return drawn


def one_program(accesses: Sequence[Access], tensors: Mapping[str, torch.Tensor], program: int) -> Figure:
    """A panel for each tensor, a cell for each element with its offset in it; the program's own are coloured."""
    maps = {name: touched(accesses, tensor, program) for name, tensor in tensors.items()}
    is_tall = all(len(drawn) == 1 for drawn in maps.values())  # vectors lie below each other
    cell = min(CELL, WIDEST / sum(drawn.shape[1] for drawn in maps.values())) if not is_tall else CELL
    high, wide = ([drawn.shape[axis] * cell for drawn in maps.values()] for axis in (0, 1))
    size = (max(wide), sum(high) + 0.35 * len(maps)) if is_tall else (sum(wide) + 0.3 * len(maps), max(high) + 0.3)
    grid = (len(maps), 1) if is_tall else (1, len(maps))
    ratios = {} if is_tall else {"width_ratios": wide}
    figure, panels = new_figure(max(size[0], 4.5), size[1] + 0.45, *grid, **ratios)
    for axes, (name, drawn) in zip(panels.flat, maps.items(), strict=True):
        _panel(axes, drawn, tensors[name])
        axes.set_title(name if axes is not panels.flat[0] else f"{name}, program {program}", fontsize=9, loc="left")
    shown = [code for code in NAMES if any((drawn == code).any() for drawn in maps.values())]
    color_legend(figure, {NAMES[code]: COLORS[code] for code in shown})
    return figure


def _panel(axes: Any, drawn: NDArray[np.int64], tensor: torch.Tensor) -> None:
    axes.imshow(drawn, cmap=ListedColormap(COLORS), vmin=0, vmax=len(COLORS) - 1, interpolation="nearest")
    axes.set_anchor("NW")
    rows, columns = np.nonzero(drawn != OUTSIDE)
    for axis, draw in enumerate((axes.hlines, axes.vlines)):  # few long lines: an SVG has a path for each
        for place in range(drawn.shape[axis]):
            for run in runs(np.flatnonzero(drawn.take(place, axis) != OUTSIDE)):
                draw((place - 0.5, place + 0.5), run[0] - 0.5, run[-1] + 0.5, color="white", linewidth=1)
    width = tensor.shape[-1]
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if drawn[row, column] != MASKED and rows.size <= LABELS:
            axes.text(column, row, row * width + column, ha="center", va="center", fontsize=6, color="black")
    axes.set(xticks=(), yticks=())
    axes.spines[:].set_visible(False)
