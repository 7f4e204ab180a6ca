"""The fully connected geometric product, forward, as one kernel: z is formed where the product loads it.

A program has a tile of all blades of one output grade, (|c|, ROWS, COLUMNS), and walks along the features that it sums
over, INNER at a time: it loads that tile of all blades of x and y, and from them forms the z of each path and blade in
registers, the left operands of the tensor cores; a path's tile of W serves all blades of the grade. 3D, grade 1, for
each feature that is summed over:

    loaded      16 ROWS of x and y + 6 COLUMNS of W, where z from memory has 18 ROWS
    formed      18 ROWS elements of z, with about 60 operations a row on the CUDA cores
    multiplied  18 ROWS * COLUMNS FMAs

The programs of the same rows, of all grades and columns, are neighbours: the first reads x and y from memory, the
others from L2. So 3 u go to and from memory and 2 more for the normalization, against 18 u with z in memory. The price:
loads and z are repeated for each of the N / COLUMNS tiles of columns, and COLUMNS is small, because each blade's sum of
ROWS * COLUMNS is in registers. At N = 128 that is twice, and z in memory has 39 FLOPs a byte in 16 bits (an H200's
ridge: 206). At N = 1024 it is 16 times, and z in memory has 312.
"""

import torch
import triton
import triton.language as tl

from .fcgp import layout, normalize, paths_to
from .reference import algebra_of
from .sgp import item, length, load_blades, phi, scaled, signed


@triton.jit
def one_grade(
    x_ptr, y_ptr, w_ptr, out_ptr, tile, batch, features, D: tl.constexpr, PATHS: tl.constexpr, TABLE: tl.constexpr,
    part: tl.constexpr, FIRST: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """A tile of the blades from FIRST on, to which PATHS lead. TABLE[part] says their z, as `layout` does."""
    count: tl.constexpr = length(TABLE, part) // length(PATHS)
    wide = tl.cdiv(features, COLUMNS)
    row = (tile // wide).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tile % wide * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    plane = tl.cast(batch, tl.int64) * features
    out = ()
    for _ in tl.static_range(count):
        out = out + (tl.zeros((ROWS, COLUMNS), tl.float32),)  # noqa: RUF005
    for first in range(0, features, INNER):
        along, below = first + tl.arange(0, INNER)[None, :], first + tl.arange(0, INNER)[:, None]
        inside = (row < batch) & (along < features)
        x = load_blades(x_ptr, plane, row * features + along, inside, D)
        y = load_blades(y_ptr, plane, row * features + along, inside, D)
        x = scaled(x, phi(x[0]) * phi(y[0]), D)
        for which in tl.static_range(length(PATHS)):
            w_row = (item(PATHS, which) * tl.cast(features, tl.int64) + below) * features
            w = tl.load(w_ptr + w_row + column, mask=(below < features) & (column < features), other=0.0)
            for k in tl.static_range(count):
                z = signed(x, y, TABLE, part, k * length(PATHS) + which).to(w.dtype)
                out = out[:k] + (tl.dot(z, w, out[k], input_precision="ieee"),) + out[k + 1 :]  # noqa: RUF005
    for k in tl.static_range(count):
        at = (FIRST + k) * plane + row * features + column
        tl.store(out_ptr + at, out[k], mask=(row < batch) & (column < features))


@triton.jit(do_not_specialize=["batch"])
def fused_kernel(
    x_ptr, y_ptr, w_ptr, out_ptr, batch, features,
    D: tl.constexpr, PATHS: tl.constexpr, TABLE: tl.constexpr, STARTS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """A program a grade and tile: PATHS, TABLE and STARTS have an entry for each grade."""
    grade, tile = tl.program_id(0) % length(STARTS), tl.program_id(0) // length(STARTS)
    for g in tl.static_range(length(STARTS)):
        if grade == g:
            one_grade(
                x_ptr, y_ptr, w_ptr, out_ptr, tile, batch, features,
                D, item(PATHS, g), TABLE, g, item(STARTS, g), ROWS, COLUMNS, INNER,
            )  # fmt: skip


def forward_fused(x, y, W, normalized=True):
    """What `fcgp.forward` returns; float32 is multiplied on the CUDA cores."""
    (blades, batch, features), found = x.shape, algebra_of(x)
    grades = tuple(range(len(found.sizes)))
    out = torch.empty_like(x)
    root = x.new_empty(len(grades) if normalized else 0, batch, dtype=torch.float32)
    tile = tile_of(x.dtype)
    tiles = triton.cdiv(batch, tile["ROWS"]) * triton.cdiv(features, tile["COLUMNS"])
    fused_kernel[(len(grades) * tiles,)](
        x, y, W, out, batch, features, D=blades, PATHS=tuple(paths_to(found.dimensions, grade) for grade in grades),
        TABLE=layout(found.dimensions, grades)[1], STARTS=found.starts, **tile,
    )  # fmt: skip
    if normalized:
        normalize(out, out, root, batch)
    return out, root


def tile_of(dtype):
    """ROWS * COLUMNS of three blades take 96 of a thread's registers (float32: 48), x and y half as many and more."""
    return {"ROWS": 64, "COLUMNS": 64, "INNER": 16, "num_warps": 8 if dtype == torch.float32 else 4, "num_stages": 2}
