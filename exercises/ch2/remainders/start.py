"""The squares of a matrix, by 8 programs that share its rows. It is right where the rows and columns come out even.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n_rows, n_cols, device="cuda"):
    return {"x": torch.randn(n_rows, n_cols, device=device)}


@triton.jit
def square_kernel(x_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    rows = n_rows // tl.num_programs(0)  # of each program
    for row in tl.range(pid * rows, (pid + 1) * rows):
        first = tl.cast(row, tl.int64) * n_cols  # may be larger than 2^31
        for step in range(n_cols // BLOCK):
            offsets = first + step * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + offsets)
            tl.store(y_ptr + offsets, x * x)


def run(x):
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    square_kernel[(8,)](x, y, n_rows, n_cols, BLOCK=64)
    return y
