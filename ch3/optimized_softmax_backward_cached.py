"""Softmax backward in two passes, the second out of a cache: what the first reads is to stay there until then.

dx = y * (dy - sum(y * dy)), along a row, where y is what the forward returned. As in `baseline_softmax_backward.py`,
both rows are read twice. But a program is through with them in a few loads of a thread, and these say what is to leave
the caches first:

    first pass     evict_last     will be read again, and soon
    second pass    evict_first    was read for the last time
    16,384 columns of float16, 2 programs on each of 132 SMs    2 * 132 * 64 KiB = 16.5 MiB between the passes

Nothing of a row is kept in registers, however wide it is. A program has 1024 threads. Where they take 32 registers
each, as in float16 at 16,384 columns, two share an SM: one's loads are under way while the other waits for its sum.

Predict before you measure: up to which width do the rows of all programs fit into your GPU's L2? At which widths is it
slower than `optimized_softmax_backward.py`, and how much faster where that one runs out of registers?
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
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, columns: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * columns  # 64 bits: a tensor may have more than 2^31 elements
    lane = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + lane < columns
        y = tl.load(y_ptr + at + start + lane, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        dy = tl.load(dy_ptr + at + start + lane, mask=inside, other=0.0, eviction_policy="evict_last").to(tl.float32)
        total += y * dy
    row_sum = tl.sum(total, 0)
    for start in range(0, columns, BLOCK):
        inside = start + lane < columns
        y = tl.load(y_ptr + at + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dy_ptr + at + start + lane, mask=inside, eviction_policy="evict_first").to(tl.float32)
        tl.store(dx_ptr + at + start + lane, y * (dy - row_sum), mask=inside)


def run(y, dy):
    y, dy = y.contiguous(), dy.contiguous()
    dx, (rows, columns) = torch.empty_like(y), y.shape
    block = 16_384 // y.element_size()  # 1024 lanes * 16 bytes
    if y.numel():
        softmax_backward_kernel[(rows,)](y, dy, dx, columns, BLOCK=block, num_warps=32)
    return dx
