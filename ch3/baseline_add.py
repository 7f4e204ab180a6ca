"""Add two matrices, one element a lane, found by row and column: 4 bytes an access, and a new result in each call.

Program `pid` adds the 128 elements from pid * 128 on, one a lane, as one would in CUDA C++:

    rows, cols = offsets // n_cols, offsets % n_cols     integers: half of some 50 instructions an element
    x_ptr + rows * stride_xm + cols * stride_xn          three tensors, two strides each: any layout is read as it lies

A lane has one element, so there is nothing that it could move together: a load is 4 bytes, a warp's 32 * 4 = 128.
The result is allocated anew: torch keeps a list of free blocks, so that this costs time of the CPU, none of the GPU.

Predict before you measure: every byte that arrives is used, as in `optimized_add.py`. Is there a size so
large that the memory is the limit all the same? And with half as many bytes an element?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"rows": 127, "columns": 129}, "check/one": {"rows": 1, "columns": 1},
    "check/row": {"rows": 1, "columns": 1025}, "check/fp16": {"rows": 33, "columns": 127, "dtype": "float16"},
    "check/bf16": {"rows": 65, "columns": 31, "dtype": "bfloat16"},
    "count": {"rows": 64, "columns": 1024},
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
def add_kernel(
    x_ptr, y_ptr, out_ptr, n, n_cols, stride_xm, stride_xn, stride_ym, stride_yn,
    INDEX: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    offsets = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    rows, cols = (offsets // n_cols).to(tl.int64), (offsets % n_cols).to(tl.int64)  # times a stride may exceed 2^31
    x = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + rows * stride_ym + cols * stride_yn, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def run(x, y, out):
    n = x.numel()
    result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    index = tl.int32 if n <= 2**30 else tl.int64  # 64 bits where 32 could overflow: dividing them takes much longer
    grid = (triton.cdiv(n, 128),)
    add_kernel[grid](x, y, result, n, x.shape[1], *x.stride(), *y.stride(), INDEX=index, BLOCK=128, num_warps=4)
    return result
