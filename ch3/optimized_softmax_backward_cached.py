"""Softmax backward in two passes, the second out of a cache: what the first reads is to stay there until then.

dx = y * (dy - sum(y * dy)), along a row, where y is what the forward returned. As in `baseline_softmax_backward.py`,
both rows are read twice. But a program is through with them in a few loads of a thread, and these say what is to leave
the caches first:

    first pass     evict_last     will be read again, and soon
    second pass    evict_first    was read for the last time
    16,384 columns of float16, 2 programs on each of 132 SMs    2 * 132 * 64 KiB = 16.5 MiB between the passes

Nothing of a row is kept in registers, however wide it is. A program has 1024 threads. Where they take 32 registers
each, as in float16 at 16,384 columns, two share an SM: one's loads are in flight while the other waits for its sum.

Predict before you measure: up to which width do the rows of all programs fit into your GPU's L2? At which widths is it
slower than `optimized_softmax_backward.py`, and how much faster where that one runs out of registers?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

VERSUS = ""


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    y = torch.softmax(torch.randn(rows, columns, device=device), -1)
    dy = torch.randn(rows, columns, device=device)
    return {"y": y.to(getattr(torch, dtype)), "dy": dy.to(getattr(torch, dtype))}


def reference(y, dy):
    return y * (dy - (y * dy).sum(-1, keepdim=True))


def library(y, dy):
    return torch.ops.aten._softmax_backward_data(dy, y, -1, y.dtype)


def library_compiled(y, dy):
    return compiled(library, y)(y, dy)


def cost(y, dy):
    return {"dram_bytes": 3 * y.nbytes}  # read y and dy, write dx


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
