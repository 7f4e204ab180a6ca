"""Softmax backward in one pass, narrow rows several at a time: a warp always has 1024 elements of y and of dy to load.

Problem: in `optimized_softmax_backward_registers.py` a row of 256 columns is a program of one warp, in which each lane
makes two loads, and ends.

Idea: the same pass, with one case more:

    256 columns    32 threads for four rows of y and four of dy: 16 loads of 16 bytes in flight for each lane

Beyond 16,384 columns `optimized_softmax_backward_cached.py` is the faster one: two rows do not fit into registers.

Cost: 3 elements moved for each one; a mask of rows, for the last program.

Predict: at 256 columns, is it faster than `registers`, and at 1024?
"""

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2

VERSUS = "cached"
ELEMENTS = 32  # a thread's, of y and as many of dy: 16 loads of 16 bytes in flight


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    y = torch.softmax(torch.randn(rows, columns, device=device), -1)
    dy = torch.randn(rows, columns, device=device)
    return {"y": y.to(getattr(torch, dtype)), "dy": dy.to(getattr(torch, dtype))}


@triton.jit
def softmax_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, n_rows, n_cols: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    row_start = rows.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    mask = (rows < n_rows) & (cols < n_cols)
    y = tl.load(y_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(dx_ptr + row_start + cols, y * (dy - tl.sum(y * dy, 1, keep_dims=True)), mask=mask)


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    if y.numel():
        block = next_power_of_2(columns)
        rows_at_once, warps = max(32 * ELEMENTS // block, 1), min(max(block // (32 * ELEMENTS), 1), 32)
        grid = (cdiv(rows, rows_at_once),)
        sizes = rows, columns, rows_at_once, block
        launch(softmax_backward_kernel, grid, y, dy, dx, *sizes, num_warps=warps)
    return dx
