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

SIZES = {
    "check": {"rows": 3, "columns": 127}, "check/one": {"rows": 1, "columns": 1},
    "check/narrow": {"rows": 131, "columns": 5}, "check/wide": {"rows": 2, "columns": 40_001},
    "check/fp16": {"rows": 129, "columns": 129, "dtype": "float16"},
    "check/bf16": {"rows": 5, "columns": 1025, "dtype": "bfloat16"},
    "default": {"rows": 4096, "columns": 16_384},  # 256 MiB of float32 each: larger than any L2
    "small/4096x256": {"columns": 256}, "small/4096x256/fp16": {"columns": 256, "dtype": "float16"},
    "small/4096x1024": {"columns": 1024}, "small/4096x1024/fp16": {"columns": 1024, "dtype": "float16"},
    "medium/4096x4096": {"columns": 4096}, "medium/4096x4096/fp16": {"columns": 4096, "dtype": "float16"},
    "large/4096x16384": {}, "large/4096x16384/fp16": {"dtype": "float16"},
    "large/4096x16384/bf16": {"dtype": "bfloat16"}, "large/4096x65536": {"columns": 65_536},
    "large/4096x65536/fp16": {"columns": 65_536, "dtype": "float16"},
    "batch/65536x1024": {"rows": 65_536, "columns": 1024},
    "batch/65536x1024/fp16": {"rows": 65_536, "columns": 1024, "dtype": "float16"},
}  # fmt: skip
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
    y_ptr, dy_ptr, dx_ptr, rows, columns: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    at = row.to(tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    inside = (row < rows) & (lane < columns)
    y = tl.load(y_ptr + at + lane, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at + lane, mask=inside, other=0.0).to(tl.float32)
    tl.store(dx_ptr + at + lane, y * (dy - tl.sum(y * dy, 1, keep_dims=True)), mask=inside)


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        at_once, warps = max(32 * ELEMENTS // block, 1), min(max(block // (32 * ELEMENTS), 1), 32)
        grid = (triton.cdiv(rows, at_once),)
        softmax_backward_kernel[grid](y, dy, dx, rows, columns, ROWS=at_once, BLOCK=block, num_warps=warps)
    return dx
