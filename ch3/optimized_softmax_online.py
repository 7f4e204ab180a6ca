"""Softmax of rows longer than the registers: maximum and sum in one pass, and only what L2 still has is read again.

A running sum can be kept while the maximum is still unknown: when a larger one comes along, the sum so far is scaled.

    sum <- sum * exp(old maximum - new maximum) + exp(x - new maximum)

So one pass finds both, and a second writes the result. A program of 32 warps, one per SM (two, of 16-bit types), keeps
the first 16,384 elements of its row in registers; only what lies beyond is read again, and soon enough:

    65,536 columns of float32, 132 SMs    132 * 192 KiB = 25 MiB to be read again: an L2 has room for that

The loads say so: what is to be read again is to leave L2 last, all else first.

Predict before you measure: if L2 keeps its part, how near to a copy's time does this come at 65,536 columns? At which
width would L2 be too small?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

VERSUS = ""
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
WARPS = 32  # at most: one program then fills an SM
ELEMENTS = 16  # of the row that a thread holds, of the 64 registers that each of 1024 has


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
def softmax_kernel(x_ptr, y_ptr, columns, HELD: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    first = tl.arange(0, HELD)
    held = tl.load(x_ptr + at + first, mask=first < columns, other=float("-inf"), eviction_policy="evict_first")
    lane = tl.arange(0, BLOCK // VECTOR)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    top = tl.full((BLOCK // VECTOR,), float("-inf"), tl.float32)  # each thread's own, for the elements of one load
    total = tl.zeros((BLOCK // VECTOR,), tl.float32)
    for start in range(HELD, columns, BLOCK):
        inside = start + lane < columns
        x = tl.load(x_ptr + at + start + lane, mask=inside, other=float("-inf"), eviction_policy="evict_last")
        old, top = top, tl.maximum(top, tl.max(x, 1).to(tl.float32))
        known = tl.where(top == float("-inf"), 0.0, top)  # -inf alone adds nothing, and -inf - -inf would be NaN
        exp = tl.exp(x.to(tl.float32) - known[:, None])
        total = total * tl.exp(old - known) + tl.sum(exp, 1)
    held = held.to(tl.float32)
    row_max = tl.maximum(tl.max(top, 0), tl.max(held, 0))
    exp = tl.exp(held - row_max)
    scale = 1 / (tl.sum(total * tl.exp(top - row_max), 0) + tl.sum(exp, 0))
    tl.store(y_ptr + at + first, exp * scale, mask=first < columns, eviction_policy="evict_first")
    for start in range(HELD, columns, BLOCK):
        inside = start + lane < columns
        x = tl.load(x_ptr + at + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        tl.store(y_ptr + at + start + lane, tl.exp(x - row_max) * scale, mask=inside, eviction_policy="evict_first")


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        held = min(triton.next_power_of_2(columns), WARPS * 32 * ELEMENTS)
        warps, vector = max(held // (32 * ELEMENTS), 1), 16 // x.element_size()
        block = max(held // 2, vector)  # of the rest at a time: 8 elements a thread
        softmax_kernel[(rows,)](x, y, columns, HELD=held, BLOCK=block, VECTOR=vector, num_warps=warps)
    return y
