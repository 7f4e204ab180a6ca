"""Add two matrices as the vectors they are in memory: 16 bytes an access, eight elements a lane, into `out`.

A contiguous matrix is a vector, and the sum of two needs neither rows nor columns. Program `pid` adds the 1024
elements from pid * 1024 on; the compiler sees that neighbours are adjacent, so a lane moves 16 bytes at once:

    4 warps * 32 lanes * 16 bytes = 2048 bytes an instruction: two loads of x and two of y before the first addition

Four times fewer instructions for the same bytes, no division, and each lane has 64 bytes on their way where it had 8.
`out` is there before the call: nothing is allocated. (Other layouts are copied first: `contiguous` does nothing here.)

Predict before you measure: memory delivers whole sectors to `baseline_add.py` too. Is what is saved time, or only
instructions? Is `library` faster than this at any size?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"rows": 127, "columns": 129}, "check/one": {"rows": 1, "columns": 1},
    "check/row": {"rows": 1, "columns": 1025}, "check/fp16": {"rows": 33, "columns": 127, "dtype": "float16"},
    "check/bf16": {"rows": 65, "columns": 31, "dtype": "bfloat16"},
    "default": {"rows": 8192, "columns": 8192},  # 256 MiB of float32 a matrix: larger than any L2
    "small/256x256": {"rows": 256, "columns": 256}, "small/512x512": {"rows": 512, "columns": 512},
    "small/1024x1024": {"rows": 1024, "columns": 1024},
    "small/1024x1024/fp16": {"rows": 1024, "columns": 1024, "dtype": "float16"},
    "medium/2048x2048": {"rows": 2048, "columns": 2048}, "medium/4096x1024": {"rows": 4096, "columns": 1024},
    "medium/1024x4096": {"rows": 1024, "columns": 4096},
    "medium/2048x2048/fp16": {"rows": 2048, "columns": 2048, "dtype": "float16"},
    "medium/2048x2048/bf16": {"rows": 2048, "columns": 2048, "dtype": "bfloat16"},
    "large/4096x4096": {"rows": 4096, "columns": 4096}, "large/8192x2048": {"columns": 2048}, "large/8192x8192": {},
    "large/16384x4096": {"rows": 16_384, "columns": 4096}, "large/8192x8192/fp16": {"dtype": "float16"},
    "large/8192x8192/bf16": {"dtype": "bfloat16"},
    "batch/32x128x768": {"rows": 4096, "columns": 768},  # 32 sequences of 128 tokens
    "batch/32x128x768/fp16": {"rows": 4096, "columns": 768, "dtype": "float16"},
    "batch/32x128x768/bf16": {"rows": 4096, "columns": 768, "dtype": "bfloat16"},
}  # fmt: skip


def inputs(rows=8192, columns=8192, dtype="float32", device="cuda"):
    x, y = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "y": y, "out": torch.empty_like(x)}


def reference(x, y, out):
    return x + y


def library(x, y, out):
    return torch.add(x, y, out=out)


def cost(x, y, out):
    return {"dram_bytes": 3 * x.nbytes}  # read x and y, write the sum


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64 bits: n may exceed 2^31
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside).to(tl.float32)
    tl.store(out_ptr + at, x + y, mask=inside)


def run(x, y, out):
    n = x.numel()
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    add_kernel[(triton.cdiv(n, 1024),)](x.contiguous(), y.contiguous(), out, n, BLOCK=1024, num_warps=4)
    return out
