"""Transpose a matrix tile by tile, through shared memory: rows are read and rows are written, 256 bytes at a time.

Problem: in `baseline_transpose.py` a load uses 4 of the 32 bytes of each sector.

Idea: a program takes a tile of 64 x 64. Its lanes read along the rows of x, and write along the rows of the result. The
two orders differ, so Triton moves the tile through shared memory, where an element can change its lane:

    reads      a row of the tile is 64 * 4 = 256 bytes = 8 sectors, every byte used
    writes     the same
    between    64 * 64 * 4 = 16 KiB of shared memory, written once and read once

Cost: each element is written to shared memory and read from there, with a barrier between. This stays inside the SM.

Predict: every byte crosses the memory bus once, in whole sectors. Which share of a copy's bandwidth does it reach?
"""

import torch
import triton
import triton.language as tl


def inputs(rows=8192, columns=8192, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=mask)  # lanes along a row of x
    tl.store(y_ptr + column * rows + row, x, mask=mask)  # lanes along a row of y: they trade places before


def run(x):
    rows, columns = x.shape
    y = torch.empty(columns, rows, dtype=x.dtype, device=x.device)
    transpose_kernel[(triton.cdiv(columns, 64), triton.cdiv(rows, 64))](x, y, rows, columns, BLOCK=64)
    return y
