"""The mean of five rows: each row that is loaded is added to the five sums that it is part of.

Yours: the kernel, its grid and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def window_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), tl.float32)
    a, b, c, d = zero, zero, zero, zero  # sums of row - 2 ... row + 1, which still lack rows from here on
    for row in range(first - 2, tl.minimum(first + ROWS, rows) + 2):
        mask = (row >= 0) & (row < rows) & (column < columns)
        x = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0)
        done = (row - 2 >= first) & (column < columns)
        tl.store(y_ptr + (row - 2) * columns + column, (a + x) / 5, mask=done)
        a, b, c, d = b + x, c + x, d + x, x


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 512))
    window_kernel[grid](x, y, rows, columns, ROWS=32, BLOCK=512)
    return y
