"""Figures of where a kernel looks, from its counted accesses: sectors of a warp, tiles of programs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from common.show.plot import INK, SERIES, color_legend, new_figure
from common.traffic.data import SECTOR, Access, Addresses
from common.xray.occupancy import WARP

Map = NDArray[np.int64]
USED, UNUSED, MASKED, HATCH = SERIES[0], "none", "#BBBBBB", "////"
NOT_TOUCHED, BEYOND = -1, -2  # in the map of a tensor: no program was here; a masked lane would have been
LABELS = 128  # programs whose numbers are written into their tiles, at most


def strided(stride: int, size: int = 4) -> Addresses:
    """Addresses of a warp's lanes: elements of `size` bytes, so many apart, from a boundary of sectors on."""
    return np.arange(WARP, dtype=np.uint64) * np.uint64(stride * size)


def sectors_of(addresses: Addresses, size: int = 4) -> dict[int, set[int]]:
    """The bytes that lanes use of each sector they touch: by the sector's number, from 0 to 31."""
    by_sector: dict[int, set[int]] = {}
    for address in addresses.reshape(-1).tolist():
        for byte in range(address, address + size):
            by_sector.setdefault(byte // SECTOR, set()).add(byte % SECTOR)
    return dict(sorted(by_sector.items()))


def lanes_to_sectors(loads: Mapping[str, Addresses], size: int = 4) -> Figure:
    """A panel for each load of a warp: its lanes above, the sectors that they touch below, used bytes filled.

    `loads`: a name, and the addresses of its lanes, each of `size` bytes.
    """
    figure, panels = new_figure(9.0, 1.75 * len(loads) + 0.5, len(loads), 1)
    for axes, (name, addresses) in zip(panels[:, 0], loads.items(), strict=True):
        touched = sectors_of(addresses, size)
        used, fetched = sum(map(len, touched.values())), SECTOR * len(touched)
        _lanes(axes, addresses.reshape(-1), size, touched)
        axes.set_title(f"{name}: {used} of {fetched:,} bytes used, {len(touched)} sectors fetched")
    handles = [Patch(facecolor=USED, label="bytes that a lane uses")]
    handles += [Patch(facecolor=UNUSED, edgecolor=INK, hatch=HATCH, label="fetched, not used")]
    figure.legend(handles=handles, loc="outside lower right", ncols=2)
    return figure


def _lanes(axes: Any, addresses: Addresses, size: int, touched: Mapping[int, set[int]]) -> None:
    """Lanes are of width 1; all sectors together are as wide as all lanes."""
    width = len(addresses) / len(touched)
    place = {sector: number for number, sector in enumerate(touched)}
    box = 0.94 * width  # of a sector; the rest is a gap
    for sector, number in place.items():
        left = number * width + 0.03 * width
        axes.add_patch(Rectangle((left, 0), box, 0.5, facecolor=UNUSED, edgecolor=INK, hatch=HATCH, linewidth=0.5))
        used = runs(np.array(sorted(touched[sector])))
        bars = [(left + run[0] / SECTOR * box, len(run) / SECTOR * box) for run in used]
        axes.broken_barh(bars, (0, 0.5), facecolor=USED, linewidth=0)
    for lane, address in enumerate(addresses.tolist()):
        axes.add_patch(Rectangle((lane + 0.06, 1.5), 0.88, 0.4, facecolor=USED, linewidth=0))
        axes.text(lane + 0.5, 1.7, lane, ha="center", va="center", fontsize=7, color="white")
        below = (place[address // SECTOR] + 0.03) * width + (address % SECTOR + size / 2) / SECTOR * box
        axes.plot((lane + 0.5, below), (1.5, 0.5), color=INK, linewidth=0.5)
    axes.set(xlim=(-0.2, len(addresses) + 0.2), ylim=(-0.05, 1.95))
    axes.set_yticks((0.25, 1.7), (f"sectors of {SECTOR} B", "lanes"), fontsize=8)
    axes.tick_params(length=0)
    axes.set_xticks(())
    axes.spines[:].set_visible(False)


def runs(numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Ascending numbers, cut where one does not follow the other."""
    return np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1) if numbers.size else []


def tile_map(accesses: Sequence[Access], tensor: torch.Tensor, kind: str = "store", columns: int = 0) -> Map:
    """Which program of a launch touches each element of a tensor on the CPU, by `kind` of access: the last that does.

    A row for each of the tensor's (a vector is cut into rows of `columns`), and further rows and columns where masked
    lanes would have been: these are BEYOND, and what no program touches is NOT_TOUCHED.
    """
    columns = columns or tensor.shape[-1]
    begin, size = tensor.data_ptr(), tensor.element_size()
    of_kind = [access for access in accesses if access.kind == kind]
    inside = [access for access in of_kind if begin <= int(access.addresses.min()) < begin + tensor.nbytes]
    if not inside:
        raise ValueError(f"no {kind} of these accesses touches the tensor")
    places = [_places(access, begin, size, columns) for access in inside]
    rows = max(-(-tensor.numel() // columns), *(1 + int(row.max()) for row, _ in places))
    drawn = np.full((rows, max(columns, *(1 + int(column.max()) for _, column in places))), NOT_TOUCHED)
    for (row, column), access in zip(places, inside, strict=True):
        there = access.mask.reshape(-1)
        free = ~there & (drawn[row, column] == NOT_TOUCHED)
        drawn[row[free], column[free]] = BEYOND
        drawn[row[there], column[there]] = access.program
    return drawn


def _places(access: Access, begin: int, size: int, columns: int) -> tuple[Map, Map]:
    """Row and column of each lane. Where lanes lie side by side, masked ones stay in the row, beyond its end."""
    elements = np.atleast_1d(access.addresses.astype(np.int64) - begin) // size
    row, column = np.divmod(elements, columns)
    axes = [axis for axis, wide in enumerate(elements.shape) if wide > 1]
    for axis in (axis for axis in axes if bool((np.diff(elements, axis=axis) == 1).all())):  # a tile's: either
        masked, first = ~np.atleast_1d(access.mask), elements.take([0], axis)
        row = np.where(masked, first // columns, row)
        column = np.where(masked, first % columns + elements - first, column)
    return row.reshape(-1), column.reshape(-1)


def programs_to_tiles(maps: Mapping[str, Map], rows: str = "row", columns: str = "column") -> Figure:
    """A panel for each map of a tensor (`tile_map`): elements coloured by the order of their programs."""
    figure, (panels,) = new_figure(min(3.8 * len(maps), 11.0) + 1.2, 4.2, 1, len(maps))
    for axes, (name, drawn) in zip(panels, maps.items(), strict=True):
        last, look = int(drawn.max()), {"aspect": "auto", "interpolation": "nearest"}
        image = axes.imshow(np.ma.masked_less(drawn, 0) / max(last, 1), cmap="viridis", vmin=0, vmax=1, **look)
        axes.imshow(np.ma.masked_not_equal(drawn, BEYOND), cmap=ListedColormap([MASKED]), **look)
        for program in np.unique(drawn[drawn >= 0]) if last < LABELS else ():
            _number(axes, drawn == program, int(program), program < 0.6 * last)
        axes.set_title(name)
        axes.set(xlabel=columns, ylabel=rows)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    bar = figure.colorbar(image, ax=panels, label="program, in launch order", ticks=(0, 1))
    bar.ax.set_yticklabels(("first", "last"))
    if any((drawn == BEYOND).any() for drawn in maps.values()):
        color_legend(figure, {"masked lanes": MASKED})
    return figure


def _number(axes: Any, where: NDArray[np.bool_], program: int, is_dark: bool) -> None:
    """A program's number in the middle of its elements, if they are one rectangle."""
    rows, columns = np.nonzero(where)
    middle = (columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2
    if (np.ptp(rows) + 1) * (np.ptp(columns) + 1) == rows.size:
        color = "white" if is_dark else "black"
        axes.text(*middle, program, ha="center", va="center", fontsize=7, color=color)
