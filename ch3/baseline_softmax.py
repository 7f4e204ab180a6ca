"""Softmax of every row in three passes over memory: each element is read three times and written once.

Problem: y = exp(x - max) / sum(exp(x - max)), along a row. A program takes a row and walks it in blocks of 1024, as the
formula is read, once for each value that the next step needs of the whole row:

    maximum      reads the row
    sum          reads the row
    result       reads the row, writes the result      4 elements moved where 2 would do

Cost: 4 elements moved for each one, if no cache holds a row until it is read again. An SM has room for 8 programs of
256 threads, so 8 rows are in flight in each:

    1024 columns of float32      8 * 4 KiB  =  32 KiB an SM, of 256 KiB of L1
    16,384 columns of float32    8 * 64 KiB = 512 KiB an SM, 66 MiB on 132 SMs

Predict: an H200 has 60 MiB of L2. How many times faster is `optimized_softmax_registers.py`, which reads each row
once, at 1024 and at 16,384 columns?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

SIZES = {
    "check": {"rows": 3, "columns": 127}, "check/one": {"rows": 1, "columns": 1},
    "check/wide": {"rows": 2, "columns": 9001},
    "check/fp16": {"rows": 5, "columns": 129, "dtype": "float16"},
    "check/bf16": {"rows": 3, "columns": 1025, "dtype": "bfloat16"},
    "check/tuned/narrow": {"rows": 131, "columns": 5},
    "check/tuned/held": {"rows": 2, "columns": 40_001},
    "check/tuned/beyond": {"rows": 3, "columns": 17_001},  # a thread has some of a row's start, and none of its end
    "check/tuned/shared/fp16": {"rows": 1, "columns": 17_001, "dtype": "float16"},
    "count": {"rows": 64, "columns": 4096},
    "default": {"rows": 4096, "columns": 16_384},  # 256 MiB of float32: larger than any L2
    "small/4096x1024": {"columns": 1024}, "large/4096x65536": {"columns": 65_536},
}  # fmt: skip


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    return {"x": torch.randn(rows, columns, device=device).to(getattr(torch, dtype))}


def reference(x):
    return torch.softmax(x, -1)


def library(x):
    return torch.softmax(x, -1)


def library_compiled(x):
    return compiled(library, x)(x)


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    acc_max = tl.full((BLOCK,), float("-inf"), tl.float32)
    for off in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row_start + off + cols, mask=off + cols < n_cols, other=float("-inf")).to(tl.float32)
        acc_max = tl.maximum(acc_max, x)
    row_max = tl.max(acc_max, 0)
    acc_sum = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row_start + off + cols, mask=off + cols < n_cols, other=float("-inf")).to(tl.float32)
        acc_sum += tl.exp(x - row_max)
    scale = 1 / tl.sum(acc_sum, 0)
    for off in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row_start + off + cols, mask=off + cols < n_cols).to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, tl.exp(x - row_max) * scale, mask=off + cols < n_cols)


def run(x):
    x = x.contiguous()
    y, (rows, columns) = torch.empty_like(x), x.shape
    if y.numel():
        softmax_kernel[(rows,)](x, y, columns, BLOCK=1024, num_warps=8)
    return y
