"""What many programs have added up, one row each, added up column by column."""

import triton
import triton.language as tl


@triton.jit
def add_pairs(a, b, c, d):
    """Two sums at once, for tl.reduce: the lanes of a program meet once for both."""
    return a + c, b + d


@triton.jit
def add_kernel(sums_ptr, total_ptr, programs, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, programs, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        at = (tl.program_id(1) * programs + row) * columns + column  # program_id(1): of which weight
        total += tl.load(sums_ptr + at, mask=(row < programs) & (column < columns), other=0.0)
    at = tl.program_id(1) * columns + column
    tl.store(total_ptr + at, tl.sum(total, 0, keep_dims=True), mask=column < columns)
