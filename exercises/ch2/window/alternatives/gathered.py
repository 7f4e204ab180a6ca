"""The mean of five rows: a program loads a tile of 64 rows once, and takes the rows of its 60 means from it.

Yours: the kernel, its grid and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def window_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    inside = tl.arange(0, ROWS)[:, None]
    row = tl.program_id(0) * (ROWS - 4) - 2 + inside
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * columns + column, mask=(row >= 0) & (row < rows) & (column < columns), other=0.0)
    acc = tl.zeros((ROWS, BLOCK), tl.float32)
    for k in tl.static_range(-2, 3):
        from_row = tl.minimum(tl.maximum(inside + k, 0), ROWS - 1)
        acc += tl.gather(x, tl.broadcast_to(from_row, (ROWS, BLOCK)), 0)
    mask = (inside >= 2) & (inside < ROWS - 2) & (row < rows) & (column < columns)
    tl.store(y_ptr + row * columns + column, acc / 5, mask=mask)


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(rows, 60), triton.cdiv(columns, 64))
    window_kernel[grid](x, y, rows, columns, ROWS=64, BLOCK=64)
    return y
