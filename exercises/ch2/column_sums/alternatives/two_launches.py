"""The sum of each column, the same to the last bit in every run: a row of sums for each strip, then their sum.

Yours: the kernel, its grid and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def columns_kernel(x_ptr, out_ptr, rows, columns, strip, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    first = tl.program_id(1) * strip
    last = tl.minimum(first + strip, rows)
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < last)[:, None] & (column < columns)[None, :]
        acc += tl.load(x_ptr + row[:, None].to(tl.int64) * columns + column[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + tl.program_id(1) * columns + column, tl.sum(acc, 0), mask=column < columns)


def run(x):
    rows, columns = x.shape
    strips = triton.cdiv(rows, 512)
    sums = torch.empty(strips, columns, device=x.device)
    out = torch.empty(columns, device=x.device)
    columns_kernel[(triton.cdiv(columns, 128), strips)](x, sums, rows, columns, 512, ROWS=16, COLUMNS=128)
    columns_kernel[(triton.cdiv(columns, 128), 1)](sums, out, strips, columns, strips, ROWS=16, COLUMNS=128)
    return out
