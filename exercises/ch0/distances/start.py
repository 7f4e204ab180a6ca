"""All distances between two sets of numbers. The start writes zeros into its first row.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n_rows, n_cols, device="cuda"):
    return {"a": torch.randn(n_rows, device=device), "b": torch.randn(n_cols, device=device)}


@triton.jit
def distances_kernel(a_ptr, b_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    # yours: the rows, what is loaded of a and of b, and the whole tile
    tl.store(out_ptr + cols, tl.zeros((COLS,), tl.float32), mask=cols < n_cols)


def run(a, b):
    n_rows, n_cols = a.numel(), b.numel()
    out = torch.empty(n_rows, n_cols, device=a.device)
    grid = (triton.cdiv(n_rows, 32), triton.cdiv(n_cols, 64))
    distances_kernel[grid](a, b, out, n_rows, n_cols, ROWS=32, COLS=64)
    return out
