"""Softmax backward in one pass: y and dy are read into registers once, and the row's sum is added up from there.

dx = y * (dy - sum(y * dy)), along a row, where y is what the forward returned. Between the sum and the result the two
rows stay in the registers of their threads, 32 elements of each in a thread:

    1024 columns       32 threads    a warp: its lanes add among themselves
    16,384 columns    512 threads    16 warps, who must meet once, in shared memory

3 elements are moved instead of 5. The block is the next power of two; its further lanes are zeros, which add nothing.
Beyond 16,384 columns a thread must hold more than it has registers, and spills. Of narrow rows a warp takes several.
Predict before you measure: 5/3? And an SM has room for one program of 16,384 columns: who uses the memory as it waits?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

ELEMENTS = 32  # a thread's, of y and as many of dy: 16 loads of 16 bytes in flight


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
