"""All distances: a program loads 32 + 64 numbers, and writes the 32 x 64 differences of all their pairs.

a[:, None] is a column [32, 1] and b[None, :] a row [1, 64]. Their difference is broadcast to [32, 64]; nothing is
loaded for it again. So nearly all of the traffic are the stores: 256 bytes for each row of a tile, 8 whole sectors.

Each axis has its own mask. A tile at the right edge would otherwise write into the beginning of the next row, which
belongs to another program.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n_rows": 50, "n_cols": 70}, "check/one": {"n_rows": 1, "n_cols": 1},
    "check/tall": {"n_rows": 129, "n_cols": 3}, "check/wide": {"n_rows": 2, "n_cols": 257},
    "count": {"n_rows": 96, "n_cols": 128}, "default": {"n_rows": 8192, "n_cols": 8192},
}  # fmt: skip


def inputs(n_rows, n_cols, device="cuda"):
    return {"a": torch.randn(n_rows, device=device), "b": torch.randn(n_cols, device=device)}


def reference(a, b):
    return (a[:, None] - b[None, :]).abs()


def cost(a, b):
    return {"dram_bytes": a.nbytes + b.nbytes + 4 * a.numel() * b.numel()}  # read both, write the matrix


@triton.jit
def distances_kernel(a_ptr, b_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    a = tl.load(a_ptr + rows, mask=rows < n_rows)
    b = tl.load(b_ptr + cols, mask=cols < n_cols)
    offsets = rows[:, None] * n_cols + cols[None, :]
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    tl.store(out_ptr + offsets, tl.abs(a[:, None] - b[None, :]), mask=mask)


def run(a, b):
    n_rows, n_cols = a.numel(), b.numel()
    out = torch.empty(n_rows, n_cols, device=a.device)
    grid = (triton.cdiv(n_rows, 32), triton.cdiv(n_cols, 64))
    distances_kernel[grid](a, b, out, n_rows, n_cols, ROWS=32, COLS=64)
    return out
