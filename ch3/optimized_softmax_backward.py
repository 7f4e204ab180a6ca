"""Softmax backward in one pass: y and dy are read into registers once, and the row's sum is added up from there.

Problem: `baseline_softmax_backward.py` reads both rows twice.

Idea: dx = y * (dy - sum(y * dy)), along a row, where y is what the forward pass returned. Between the sum and the
result the two rows stay in the registers of their threads, 32 elements of each in a thread:

    1024 columns       32 threads    a warp: its lanes add among themselves
    16,384 columns    512 threads    16 warps, which exchange their sums once, through shared memory

The block is the next power of two; its lanes beyond the row hold zeros. Of narrow rows a warp takes several.

Cost: 3 elements moved instead of 5. Beyond 16,384 columns a thread must hold more than it has registers: at 65,536 the
two rows are 512 KiB, and an SM has 256 KiB of registers. What does not fit spills to memory, and comes back.

Predict: at 65,536 columns, is this version faster or slower than the baseline's two passes?
"""

import torch
import triton
import triton.language as tl

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
        block = triton.next_power_of_2(columns)
        rows_at_once, warps = max(32 * ELEMENTS // block, 1), min(max(block // (32 * ELEMENTS), 1), 32)
        grid = (triton.cdiv(rows, rows_at_once),)
        softmax_backward_kernel[grid](y, dy, dx, rows, columns, ROWS=rows_at_once, BLOCK=block, num_warps=warps)
    return dx
