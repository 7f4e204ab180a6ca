"""All distances between two sets of numbers. The start writes zeros into its first row.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n_rows, n_cols, device="cuda"):
    return {"a": torch.randn(n_rows, device=device), "b": torch.randn(n_cols, device=device)}


@triton.jit
def distances_kernel(a_ptr, b_ptr, out_ptr, n_rows, n_cols, COLS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    a = tl.load(a_ptr + row)
    b = tl.load(b_ptr + cols, mask=cols < n_cols)
    tl.store(out_ptr + row * n_cols + cols, tl.abs(a - b), mask=cols < n_cols)


def run(a, b):
    n_rows, n_cols = a.numel(), b.numel()
    out = torch.empty(n_rows, n_cols, device=a.device)
    grid = (n_rows, triton.cdiv(n_cols, 2048))
    distances_kernel[grid](a, b, out, n_rows, n_cols, COLS=2048)
    return out
