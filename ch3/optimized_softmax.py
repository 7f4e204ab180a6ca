"""Softmax of every row in one pass: a row is read into registers, and each element is read once and written once.

y = exp(x - max) / sum(exp(x - max)), along a row. Between the three steps the row stays where it is, in the registers
of its threads, 16 elements in each:

    512 columns        32 threads    a warp: its lanes find maximum and sum among themselves
    16,384 columns   1024 threads    32 warps, who must meet twice, in shared memory
    256 columns        32 threads    two rows to a warp, lest its lanes have two loads each

The block is the next power of two; its further lanes hold -inf, which is no maximum and adds nothing to the sum.
Beyond 16,384 columns a thread must hold more, and at 65,536 as much as it has registers.

Predict before you measure: half the bytes of `baseline_softmax.py`, if its reads come from DRAM. At which widths do
they not? And what is the time at 65,536 columns?
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
    "default": {"rows": 4096, "columns": 16_384},  # 256 MiB of float32: larger than any L2
    "small/4096x256": {"columns": 256}, "small/4096x256/fp16": {"columns": 256, "dtype": "float16"},
    "small/4096x1024": {"columns": 1024}, "small/4096x1024/fp16": {"columns": 1024, "dtype": "float16"},
    "medium/4096x4096": {"columns": 4096}, "medium/4096x4096/fp16": {"columns": 4096, "dtype": "float16"},
    "large/4096x16384": {}, "large/4096x16384/fp16": {"dtype": "float16"},
    "large/4096x16384/bf16": {"dtype": "bfloat16"}, "large/4096x65536": {"columns": 65_536},
    "large/4096x65536/fp16": {"columns": 65_536, "dtype": "float16"},
    "batch/65536x1024": {"rows": 65_536, "columns": 1024},
    "batch/65536x1024/fp16": {"rows": 65_536, "columns": 1024, "dtype": "float16"},
}  # fmt: skip
ELEMENTS = 16  # a thread's: 4 loads of 16 bytes in flight, and registers for as many more threads


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
def softmax_kernel(x_ptr, y_ptr, rows, columns: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    at = row.to(tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    inside = (row < rows) & (lane < columns)
    x = tl.load(x_ptr + at + lane, mask=inside, other=float("-inf")).to(tl.float32)
    exp = tl.exp(x - tl.max(x, 1, keep_dims=True))
    tl.store(y_ptr + at + lane, exp * (1 / tl.sum(exp, 1, keep_dims=True)), mask=inside)


def run(x):
    x = x.contiguous()
    y, (rows, columns) = torch.empty_like(x), x.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        at_once, warps = max(32 * ELEMENTS // block, 1), min(max(block // (32 * ELEMENTS), 1), 32)
        grid = (triton.cdiv(rows, at_once),)
        softmax_kernel[grid](x, y, rows, columns, ROWS=at_once, BLOCK=block, num_warps=warps)
    return y
