"""Softmax backward in one pass: y and dy are read into registers once, and the row's sum is added up from there.

Problem: `baseline_softmax_backward.py` reads both rows twice.

Idea: dx = y * (dy - sum(y * dy)), along a row, where y is what the forward pass returned. Between the sum and the
result the two rows stay in the registers of their threads, 32 elements of each in a thread:

    1024 columns       32 threads    a warp: its lanes add among themselves
    16,384 columns    512 threads    16 warps, which exchange their sums once, through shared memory

The block is the next power of two; its lanes beyond the row hold zeros.

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
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    y = tl.load(y_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(dx_ptr + row_start + cols, y * (dy - tl.sum(y * dy, 0)), mask=mask)


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        warps = min(max(block // (32 * ELEMENTS), 1), 32)
        softmax_backward_kernel[(rows,)](y, dy, dx, columns, BLOCK=block, num_warps=warps)
    return dx
