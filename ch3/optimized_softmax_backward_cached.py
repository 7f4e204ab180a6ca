"""Softmax backward in two passes, the second out of a cache: what the first reads is to stay there until then.

Problem: at 65,536 columns the two rows of `optimized_softmax_backward_registers.py` are twice as large as an SM's
registers.

Idea: read both rows twice, as `baseline_softmax_backward.py` does, but in few loads a thread, which say what is to
leave the caches first:

    first pass     evict_last     will be read again, and soon
    second pass    evict_first    was read for the last time

Nothing of a row is kept in registers, however wide it is. A program has 1024 threads, so few rows are in flight.

Cost: each element of y and dy comes from memory once and, if L2 holds it, from L2 once more. What must stay there:

    65,536 columns, one program on each of 132 SMs    132 * 2 * 256 KiB = 66 MiB of float32, 33 MiB of float16

A block has 16 KiB of a row, so narrow rows leave most of its lanes without work.

Predict: an H200 has 60 MiB of L2. In which of the two types does it gain more on the baseline?
"""

import torch
import triton
import triton.language as tl

VERSUS = "registers"


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    y = torch.softmax(torch.randn(rows, columns, device=device), -1)
    dy = torch.randn(rows, columns, device=device)
    return {"y": y.to(getattr(torch, dtype)), "dy": dy.to(getattr(torch, dtype))}


@triton.jit
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        y = tl.load(y_ptr + row_start + off + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        dy = tl.load(dy_ptr + row_start + off + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        acc += y * dy
    row_sum = tl.sum(acc, 0)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        y = tl.load(y_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dy_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        tl.store(dx_ptr + row_start + off + cols, y * (dy - row_sum), mask=mask)


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    block = 16_384 // y.element_size()  # 1024 lanes * 16 bytes
    if y.numel():
        softmax_backward_kernel[(rows,)](y, dy, dx, columns, BLOCK=block, num_warps=32)
    return dx
