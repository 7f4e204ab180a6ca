"""The mean of five rows: every element is loaded by five programs, once for each row of the result that it is part of.

Yours: the kernel, its grid and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def row_of(x_ptr, row, column, rows, columns):
    """A part of a row; zeros above the first one and below the last one."""
    mask = (row >= 0) & (row < rows) & (column < columns)
    return tl.load(x_ptr + row * columns + column, mask=mask, other=0.0)


@triton.jit
def window_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(1) * ROWS
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = row_of(x_ptr, first - 2, column, rows, columns)
    b = row_of(x_ptr, first - 1, column, rows, columns)
    c = row_of(x_ptr, first, column, rows, columns)
    d = row_of(x_ptr, first + 1, column, rows, columns)
    for row in range(first, tl.minimum(first + ROWS, rows)):
        e = row_of(x_ptr, row + 2, column, rows, columns)
        tl.store(y_ptr + row * columns + column, (a + b + c + d + e) / 5, mask=column < columns)
        a, b, c, d = c, d, e, e


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(columns, 512), triton.cdiv(rows, 32))
    window_kernel[grid](x, y, rows, columns, ROWS=32, BLOCK=512)
    return y
