"""The sum of each column: a tile of 32 rows and 64 columns at a time, so that neighbouring lanes load neighbours.

Two neighbours in memory belong to the same row. So a program takes 64 columns: each row of its tile is 256 bytes, 8
whole sectors. A program with one column would use 4 bytes of each sector.

The accumulator has the tile's shape. An addition needs no other lane; only the one reduction at the end does. The last
step has masked rows, which hold 0 and add nothing. A matrix of 1000 columns has 16 programs, and the last one has
masked columns.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n_rows": 100, "n_cols": 70}, "check/one": {"n_rows": 1, "n_cols": 1},
    "check/tall": {"n_rows": 1100, "n_cols": 3}, "check/wide": {"n_rows": 5, "n_cols": 257},
    "count": {"n_rows": 40, "n_cols": 512}, "default": {"n_rows": 2048, "n_cols": 32_768},
}  # fmt: skip


def inputs(n_rows, n_cols, device="cuda"):
    return {"x": torch.randn(n_rows, n_cols, device=device)}


def reference(x):
    return x.sum(0)


def cost(x):
    return {"dram_bytes": x.nbytes + 4 * x.shape[1]}  # read x, write a number for each column


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    acc = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, n_rows, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(acc, 0), mask=cols < n_cols)


def run(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, device=x.device)
    column_sum_kernel[(triton.cdiv(n_cols, 64),)](x, out, n_rows, n_cols, ROWS=32, COLS=64)
    return out
