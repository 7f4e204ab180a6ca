"""Add two matrices by strides: one element a lane, found by row and column, 4 bytes an access, into a new result.

Problem: one kernel is to serve every layout, transposed and strided matrices as well. So each lane divides to find its
row and column, as one would write it in CUDA C++, and loads 4 bytes; a warp loads 32 * 4 = 128. (Who knows that
matrices are contiguous writes `optimized_add_flat.py` at once, which is Triton's first tutorial.)

    rows, cols = offsets // n_cols, offsets % n_cols     integers: half of some 50 instructions an element (--xray)
    x_ptr + rows * stride_xm + cols * stride_xn          two strides a tensor: any layout is read as it lies

8192 x 8192 elements take 524,288 programs. Each of them starts, loads once, waits, stores once and ends.

Cost: 12 bytes an element of float32: two reads and one write. Each byte that arrives is used. The result is a new
tensor in each call; torch keeps freed blocks in a list, so a new tensor costs time of the CPU, not of the GPU.

Predict: 8192 x 8192 elements of float16 have half the bytes of float32, and need as many programs. How many times less
does this version take for them?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"rows": 33, "columns": 67}, "check/one": {"rows": 1, "columns": 1},
    "check/row": {"rows": 1, "columns": 1025},
    "check/bf16": {"rows": 65, "columns": 31, "dtype": "bfloat16"},
    "check/tuned/tail/fp16": {"rows": 33, "columns": 527, "dtype": "float16"},
    "count": {"rows": 64, "columns": 1024},
    "default": {"rows": 8192, "columns": 8192},  # 256 MiB of float32 a matrix: larger than any L2
    "large/8192x8192/fp16": {"dtype": "float16"},
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
