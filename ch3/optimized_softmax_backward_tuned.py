"""Softmax backward at any width: several narrow rows at a time, and a part of very wide ones in registers.

Problem: in `optimized_softmax_backward_registers.py` a row of 256 columns is a program of one warp, in which each lane
makes two loads, and ends. Two rows of 65,536 columns do not fit into registers. `optimized_softmax_backward_cached.py`
reads all of them twice, though registers could hold a part.

Idea: the same pass, with two cases more:

    256 columns      32 threads for four rows of y and four of dy: 16 loads of 16 bytes in flight for each lane
    65,536 columns   the first 16,384 elements of y and of dy stay in registers, the rest is read again, soon enough for
                     L2 to have it. Loads say so, as in `cached`. Rows of less than 32,768 are held whole

Cost: 3 elements moved for each one, for wide rows up to 2 more from L2; a mask of rows, for the last program. What L2
must hold, with one program on each of 132 SMs:

    65,536 columns    132 * 2 * 192 KiB = 50 MiB of float32, 25 MiB of float16; 66 and 33 in `cached`

Predict: at 256 columns, is it faster than `registers`, and at 1024?
"""

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2

VERSUS = "cached"
ELEMENTS = 32  # a thread's, of y and as many of dy: 16 loads of 16 bytes in flight
HELD = 16_384  # elements of each of a wide row's y and dy in registers: 16 and 16 of the 64 that 1024 threads have


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


@triton.jit
def held_kernel(y_ptr, dy_ptr, dx_ptr, n_cols, HELD: tl.constexpr, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    held_cols, cols = tl.arange(0, HELD), tl.arange(0, BLOCK)
    y_held = tl.load(y_ptr + row_start + held_cols, eviction_policy="evict_first")
    dy_held = tl.load(dy_ptr + row_start + held_cols, eviction_policy="evict_first")
    acc = tl.zeros((BLOCK,), tl.float32)
    for off in range(HELD, n_cols, BLOCK):
        mask = off + cols < n_cols
        y = tl.load(y_ptr + row_start + off + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        dy = tl.load(dy_ptr + row_start + off + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        acc += y * dy
    y_held, dy_held = y_held.to(tl.float32), dy_held.to(tl.float32)
    row_sum = tl.sum(acc, 0) + tl.sum(y_held * dy_held, 0)
    tl.store(dx_ptr + row_start + held_cols, y_held * (dy_held - row_sum), eviction_policy="evict_first")
    for off in range(HELD, n_cols, BLOCK):
        mask = off + cols < n_cols
        y = tl.load(y_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dy_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        tl.store(dx_ptr + row_start + off + cols, y * (dy - row_sum), mask=mask, eviction_policy="evict_first")


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    if y.numel() and columns >= 2 * HELD:
        launch(held_kernel, (rows,), y, dy, dx, columns, HELD=HELD, BLOCK=HELD // 2, num_warps=32)
    elif y.numel():
        block = next_power_of_2(columns)
        rows_at_once, warps = max(32 * ELEMENTS // block, 1), min(max(block // (32 * ELEMENTS), 1), 32)
        grid = (cdiv(rows, rows_at_once),)
        sizes = rows, columns, rows_at_once, block
        launch(softmax_backward_kernel, grid, y, dy, dx, *sizes, num_warps=warps)
    return dx
