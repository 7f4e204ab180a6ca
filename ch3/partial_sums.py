"""The second launch of a sum over rows: adds up, column by column, the partial sums that programs have stored."""

import triton
import triton.language as tl


@triton.jit
def add_pairs(a, b, c, d):
    """Two sums at once, for tl.reduce: the lanes of a program meet once for both."""
    return a + c, b + d


@triton.jit
def add_kernel(sums_ptr, total_ptr, programs, n_cols, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    cols = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, programs, ROWS):
        rows = start + tl.arange(0, ROWS)[:, None]
        offsets = (tl.program_id(1) * programs + rows) * n_cols + cols  # program_id(1): of which weight
        acc += tl.load(sums_ptr + offsets, mask=(rows < programs) & (cols < n_cols), other=0.0)
    offsets = tl.program_id(1) * n_cols + cols
    tl.store(total_ptr + offsets, tl.sum(acc, 0, keep_dims=True), mask=cols < n_cols)
