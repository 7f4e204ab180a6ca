"""The mean of five rows: every element is loaded by five programs, once for each row of the result that it is part of.

Yours: the kernel, its grid and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def window_kernel(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(-2, 3):
        mask = (row + k >= 0) & (row + k < rows) & (column < columns)
        acc += tl.load(x_ptr + (row + k) * columns + column, mask=mask, other=0.0)
    tl.store(y_ptr + row * columns + column, acc / 5, mask=column < columns)


def run(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    window_kernel[(rows, triton.cdiv(columns, 512))](x, y, rows, columns, BLOCK=512)
    return y
