"""Three snippets, each a launch of its own on the same float32 matrix `x` [rows, cols]."""

import torch
import triton
import triton.language as tl

SIZES = {
    "round": {"rows": 64, "cols": 128}, "narrow": {"rows": 24, "cols": 40}, "flat": {"rows": 3, "cols": 200},
    "unseen": {"rows": 37, "cols": 72},
}  # fmt: skip


def inputs(rows, cols, device="cuda"):
    return {"x": torch.randn(rows, cols, device=device)}


@triton.jit
def every_second_kernel(x_ptr, out_ptr, n_out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + 2 * offsets, mask=offsets < n_out)
    tl.store(out_ptr + offsets, x, mask=offsets < n_out)


def every_second(x):
    n_out = triton.cdiv(x.numel(), 2)
    out = torch.empty(n_out, device=x.device)
    every_second_kernel[(triton.cdiv(n_out, 64),)](x, out, n_out, BLOCK=64)


@triton.jit
def row_sums_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0))


def row_sums(x):
    rows, cols = x.shape
    out = torch.empty(rows, device=x.device)
    row_sums_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))


@triton.jit
def tiles_kernel(x_ptr, out_ptr, n_rows, n_cols):
    rows = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
    cols = tl.program_id(1) * 4 + tl.arange(0, 4)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask)
    tl.store(out_ptr + rows * n_cols + cols, x, mask=mask)


def tiles(x):
    rows, cols = x.shape
    out = torch.empty_like(x)
    tiles_kernel[(triton.cdiv(rows, 16), triton.cdiv(cols, 4))](x, out, rows, cols)
