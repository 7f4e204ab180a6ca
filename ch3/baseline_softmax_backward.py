"""Softmax backward in two passes over memory: each element of y and of dy is read twice, and one of dx written.

Problem: dx = y * (dy - sum(y * dy)), along a row, where y is what the forward pass returned. A program takes a row and
walks it in blocks of 1024, once for each value that the next step needs of the whole row:

    sum       reads y and dy
    result    reads y and dy, writes dx      5 elements moved where 3 would do

Cost: 5 elements moved for each one of dx, if no cache holds both rows until they are read again. Two rows are in flight
for each program that an SM has room for (on 132 SMs of an H200, --xray):

    1024 columns of float32       8 programs * 2 *  4 KiB =  64 KiB an SM, of 256 KiB of L1
    16,384 columns of float32     6 programs * 2 * 64 KiB = 768 KiB an SM, 99 MiB in all, more than L2 holds

Predict: how many times faster is `optimized_softmax_backward_registers.py`, which reads both rows once, at these two
widths?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

SIZES = {
    "check": {"rows": 3, "columns": 127}, "check/one": {"rows": 1, "columns": 1},
    "check/wide": {"rows": 2, "columns": 8195},
    "check/fp16": {"rows": 5, "columns": 129, "dtype": "float16"},
    "check/bf16": {"rows": 3, "columns": 1025, "dtype": "bfloat16"},
    "check/tuned/narrow": {"rows": 131, "columns": 5},
    "check/tuned/held": {"rows": 2, "columns": 40_001},  # two blocks and a part of one after what registers hold
    "count": {"rows": 64, "columns": 4096},
    "default": {"rows": 4096, "columns": 16_384},  # 256 MiB of float32 each: larger than any L2
    "small/4096x1024": {"columns": 1024},
}  # fmt: skip


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
        y = tl.load(y_ptr + row_start + off + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + off + cols, mask=mask, other=0.0).to(tl.float32)
        acc += y * dy
    row_sum = tl.sum(acc, 0)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        y = tl.load(y_ptr + row_start + off + cols, mask=mask).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + off + cols, mask=mask).to(tl.float32)
        tl.store(dx_ptr + row_start + off + cols, y * (dy - row_sum), mask=mask)


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    if y.numel():
        softmax_backward_kernel[(rows,)](y, dy, dx, columns, BLOCK=1024, num_warps=8)
    return dx
