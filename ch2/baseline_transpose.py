"""Transpose a matrix by reading down its columns: 32 lanes read 32 sectors and use 4 bytes of each.

Problem: memory arrives in sectors of 32 bytes. Program `pid` writes 1024 neighbouring elements of the result. In x
these elements lie below each other, a whole row apart:

    a store    32 lanes * 16 bytes = 512 bytes = 16 sectors, every byte used
    a load     32 lanes in 32 rows             = 32 sectors, 4 bytes of 32 used

Cost: if the caches keep nothing, a byte read costs 8 bytes of traffic, and a byte written costs 1. A cache can keep
the rest of a sector until another program asks for it.

Predict: `optimized_transpose.py` costs 1 for a byte read and 1 for a byte written. How many times faster is it if the
caches keep nothing, and if they keep everything?
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"rows": 127, "columns": 129},
    "check/one": {"rows": 1, "columns": 1},
    "check/row": {"rows": 1, "columns": 1025},
    "check/tail": {"rows": 65, "columns": 31},
    "count": {"rows": 1024, "columns": 256},  # a program reads down one whole column
    "default": {"rows": 8192, "columns": 8192},  # 256 MiB of float32 in, as many out: larger than any L2
}


def inputs(rows=8192, columns=8192, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device)}


def reference(x):
    return x.T.contiguous()


def library(x):
    return x.T.clone(memory_format=torch.contiguous_format)


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # in the result, whose rows are the columns of x
    mask = offsets < rows * columns
    x = tl.load(x_ptr + offsets % rows * columns + offsets // rows, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)


def run(x):
    rows, columns = x.shape
    y = torch.empty(columns, rows, dtype=x.dtype, device=x.device)
    transpose_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, rows, columns, BLOCK=1024)
    return y
