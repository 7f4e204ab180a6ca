"""The mean of five rows: a program walks down a strip, and keeps the last four rows in registers.

Each step loads one row and stores one. The row that is loaded becomes the row above, by a new name: a, b, c, d = b, c,
d, e moves nothing in a loop that the compiler writes out, and registers to registers in one that it does not. A strip
of 32 rows needs 4 more for its ends, which its neighbours load too: 36 rows are read and 32 written.

This works because a row's neighbours above and below belong to the same lane. Neighbours within a row belong to other
lanes; for those there is the cache, or shared memory (`shared_stencil`). Five additions for each element look wasteful
beside a running sum, which adds the new row and subtracts the old one. But a running sum keeps the rounding error of
all its steps, and once a NaN or an infinity is in it, it never gets out.

The loop waits for one row after the other, so few bytes of a program are in flight. There are many programs instead:
16 groups of columns times 256 strips, for a matrix of 8192 x 8192. Longer strips would load less twice, and leave too
few programs for all SMs.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"rows": 130, "columns": 37}, "check/one": {"rows": 1, "columns": 1},
    "check/wide": {"rows": 3, "columns": 1025}, "check/tall": {"rows": 256, "columns": 3},
    "count": {"rows": 128, "columns": 128}, "default": {"rows": 8192, "columns": 8192},
}  # fmt: skip


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


def reference(x):
    padded = torch.nn.functional.pad(x, (0, 0, 2, 2))
    return sum(padded[k : k + x.shape[0]] for k in range(5)) / 5


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}


@triton.jit
def row_of(x_ptr, row, column, rows, columns):
    """A part of a row; zeros above the first one and below the last one."""
    mask = (row >= 0) & (row < rows) & (column < columns)
    return tl.load(x_ptr + row * columns + column, mask=mask, other=0.0)


@triton.jit
def window_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    a = row_of(x_ptr, first - 2, column, rows, columns)
    b = row_of(x_ptr, first - 1, column, rows, columns)
    c = row_of(x_ptr, first, column, rows, columns)
    d = row_of(x_ptr, first + 1, column, rows, columns)
    for row in range(first, tl.minimum(first + ROWS, rows)):
        e = row_of(x_ptr, row + 2, column, rows, columns)
        tl.store(y_ptr + row * columns + column, (a + b + c + d + e) / 5, mask=column < columns)
        a, b, c, d = b, c, d, e


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 512))
    window_kernel[grid](x, y, rows, columns, ROWS=32, BLOCK=512)
    return y
