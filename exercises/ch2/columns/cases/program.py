"""The sum of each column: a program walks down one column, 64 rows at a time."""

import torch
import triton
import triton.language as tl

SIZES = {
    "whole": {"rows": 64, "columns": 8},
    "masked": {"rows": 100, "columns": 12},
    "many": {"rows": 256, "columns": 40},
    "odd": {"rows": 333, "columns": 9},
    "row": {"rows": 1, "columns": 21},
    "unseen": {"rows": 171, "columns": 27},
}


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


@triton.jit
def columns_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * columns + column, mask=row < rows, other=0.0)
    tl.store(out_ptr + column, tl.sum(acc, 0))


def run(x):
    rows, columns = x.shape
    out = torch.empty(columns, device=x.device)
    columns_kernel[(columns,)](x, out, rows, columns, BLOCK=64)
    return out
