"""The sum of each column of a matrix. The start adds up nothing: each program stores zeros.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n_rows, n_cols, device="cuda"):
    return {"x": torch.randn(n_rows, n_cols, device=device)}


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    acc = tl.zeros((ROWS, COLS), tl.float32)
    for _ in range(1):
        rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + cols, tl.sum(acc, 0), mask=cols < n_cols)


def run(x):
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, device=x.device)
    column_sum_kernel[(triton.cdiv(n_cols, 64), triton.cdiv(n_rows, 32))](x, out, n_rows, n_cols, ROWS=32, COLS=64)
    return out
