"""The fully connected geometric product, forward, as one kernel: z is formed where the product loads it.

A program computes a tile of all blades of one output grade, (|c|, BLOCK_M, BLOCK_N). It walks along the features that
it sums over, BLOCK_K at a time. It loads that tile of all blades of x and y and forms the z of each path and blade in
registers: these are the left operands of the products. A path's tile of W serves all blades of the grade. For 3D, grade
1, and each feature that is summed over:

    loaded      16 BLOCK_M of x and y + 6 BLOCK_N of W, where z from memory has 18 BLOCK_M
    formed      18 BLOCK_M elements of z, with about 60 operations a row on the CUDA cores
    multiplied  18 BLOCK_M * BLOCK_N FMAs

The programs of the same rows, of all grades and columns, are neighbours: the first reads x and y from memory, the
others from L2. So 3 u move to and from memory and 2 u more for the normalization, against 18 u with z in memory. In
return, loads and z are repeated for each of the N / BLOCK_N tiles of columns. BLOCK_N is small, because the BLOCK_M *
BLOCK_N sums of each blade are in registers. At N = 128 they are repeated twice, and with z in memory there are 39 FLOPs
a byte in 16 bits (an H200's ridge: 206). At N = 1024 it is 16 times, and with z in memory 312 FLOPs a byte.
"""

import torch
import triton
import triton.language as tl

from .fcgp import layout, normalize, paths_to
from .reference import algebra_of
from .sgp import item, length, load_blades, phi, scaled, signed


@triton.jit
def one_grade(
    x_ptr, y_ptr, w_ptr, out_ptr, pid, batch, features, D: tl.constexpr, PATHS: tl.constexpr, TABLE: tl.constexpr,
    part: tl.constexpr, FIRST: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of the blades from FIRST on, to which PATHS lead. TABLE[part] says their z, as `layout` does."""
    count: tl.constexpr = length(TABLE, part) // length(PATHS)
    num_pid_n = tl.cdiv(features, BLOCK_N)
    row = (pid // num_pid_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    stride_d = tl.cast(batch, tl.int64) * features
    acc = ()
    for _ in tl.static_range(count):
        acc = acc + (tl.zeros((BLOCK_M, BLOCK_N), tl.float32),)  # noqa: RUF005
    for first in range(0, features, BLOCK_K):
        k_cols, k_rows = first + tl.arange(0, BLOCK_K)[None, :], first + tl.arange(0, BLOCK_K)[:, None]
        mask = (row < batch) & (k_cols < features)
        x = load_blades(x_ptr, stride_d, row * features + k_cols, mask, D)
        y = load_blades(y_ptr, stride_d, row * features + k_cols, mask, D)
        x = scaled(x, phi(x[0]) * phi(y[0]), D)
        for p in tl.static_range(length(PATHS)):
            w_row = (item(PATHS, p) * tl.cast(features, tl.int64) + k_rows) * features
            w = tl.load(w_ptr + w_row + cols, mask=(k_rows < features) & (cols < features), other=0.0)
            for k in tl.static_range(count):
                z = signed(x, y, TABLE, part, k * length(PATHS) + p).to(w.dtype)
                acc = acc[:k] + (tl.dot(z, w, acc[k], input_precision="ieee"),) + acc[k + 1 :]  # noqa: RUF005
    for k in tl.static_range(count):
        offsets = (FIRST + k) * stride_d + row * features + cols
        tl.store(out_ptr + offsets, acc[k], mask=(row < batch) & (cols < features))


@triton.jit(do_not_specialize=["batch"])
def fused_kernel(
    x_ptr, y_ptr, w_ptr, out_ptr, batch, features,
    D: tl.constexpr, PATHS: tl.constexpr, TABLE: tl.constexpr, STARTS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A program a grade and tile: PATHS, TABLE and STARTS have an entry for each grade."""
    grade, pid = tl.program_id(0) % length(STARTS), tl.program_id(0) // length(STARTS)
    for g in tl.static_range(length(STARTS)):
        if grade == g:
            one_grade(
                x_ptr, y_ptr, w_ptr, out_ptr, pid, batch, features,
                D, item(PATHS, g), TABLE, g, item(STARTS, g), BLOCK_M, BLOCK_N, BLOCK_K,
            )  # fmt: skip


def forward_fused(x, y, W, normalized=True):
    """What `fcgp.forward` returns; float32 is multiplied on the CUDA cores."""
    (blades, batch, features), found = x.shape, algebra_of(x)
    grades = tuple(range(len(found.sizes)))
    out = torch.empty_like(x)
    root = x.new_empty(len(grades) if normalized else 0, batch, dtype=torch.float32)
    tile = tile_of(x.dtype)
    tiles = triton.cdiv(batch, tile["BLOCK_M"]) * triton.cdiv(features, tile["BLOCK_N"])
    fused_kernel[(len(grades) * tiles,)](
        x, y, W, out, batch, features, D=blades, PATHS=tuple(paths_to(found.dimensions, grade) for grade in grades),
        TABLE=layout(found.dimensions, grades)[1], STARTS=found.starts, **tile,
    )  # fmt: skip
    if normalized:
        normalize(out, out, root, batch)
    return out, root


def tile_of(dtype):
    """The tiles of three blades take 96 of a thread's registers (float32: 48), x and y half as many and more."""
    warps = 8 if dtype == torch.float32 else 4
    return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "num_warps": warps, "num_stages": 2}
