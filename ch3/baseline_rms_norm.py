"""RMS norm of every row in two passes over memory: each element is read twice and written once.

Problem: y = x / sqrt(mean(x^2) + eps) * weight, along a row. A program takes a row and walks it in blocks of 1024, as
the formula is read, once for each value that the next step needs of the whole row:

    mean of squares    reads the row
    result             reads the row, writes the result      3 elements moved where 2 would do

Cost: 3 elements moved for each one, if no cache holds a row until it is read again. An SM has room for 8 programs of
256 threads, so 8 rows are in flight in each.

Predict: `optimized_rms_norm_registers.py` reads each row once. How many times faster can it be, if every read is from
DRAM?
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
    "check/tuned/rows/fp16": {"rows": 67, "columns": 129, "dtype": "float16"},  # several a program
    "check/tuned/half": {"rows": 9, "columns": 1025},  # more rows than SMs
    "count": {"rows": 128, "columns": 4096},
    "default": {"rows": 4096, "columns": 8192},  # 128 MiB of float32: larger than any L2
    "large/4096x16384": {"columns": 16_384},
}  # fmt: skip
EPS = 1e-5


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, w_weight = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
    return {"x": x.to(getattr(torch, dtype)), "w_weight": w_weight.to(getattr(torch, dtype))}


def reference(x, w_weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * w_weight


def library(x, w_weight):
    return torch.nn.functional.rms_norm(x, x.shape[1:], w_weight, EPS)


def library_compiled(x, w_weight):
    return compiled(library, x)(x, w_weight)


def cost(x, w_weight):
    return {"dram_bytes": 2 * x.nbytes + w_weight.nbytes}  # read x and weight, write y


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, n_cols: tl.constexpr, eps, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row_start + off + cols, mask=off + cols < n_cols, other=0.0).to(tl.float32)
        acc += x * x
    rstd = tl.rsqrt(tl.sum(acc, 0) / n_cols + eps)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + off + cols, mask=mask).to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, x * rstd * weight, mask=mask)


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        rms_norm_kernel[(rows,)](x, w_weight, y, columns, EPS, BLOCK=1024, num_warps=8)
    return y
