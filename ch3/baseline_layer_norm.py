"""Layer norm of every row in three passes over memory: each element is read three times and written once.

Problem: y = (x - mean) / sqrt(variance + eps) * weight + bias, along a row. A program takes a row and walks it in
blocks of 1024, as the formula is read, once for each value that the next step needs of the whole row:

    mean        reads the row
    variance    reads the row
    result      reads the row, writes the result      4 elements moved where 2 would do

The variance is that of the differences from the mean. (The mean of the squares less the square of the mean would save a
pass. But where the mean is large, two nearly equal numbers are subtracted, and few digits are left.)

Cost: 4 elements moved for each one, if no cache holds a row until it is read again. With up to 32 registers a thread an
SM has room for 8 programs of 256 threads, so 8 rows are in flight in each.

Predict: `optimized_layer_norm_registers.py` reads each row once. How many times faster can it be, if every read is from
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
    x = 3 + torch.randn(rows, columns, device=device)  # a mean that is not 0, as after a residual
    w_weight, w_bias = torch.randn(columns, device=device), torch.randn(columns, device=device)
    dtype = getattr(torch, dtype)
    return {"x": x.to(dtype), "w_weight": w_weight.to(dtype), "w_bias": w_bias.to(dtype)}


def reference(x, w_weight, w_bias):
    return torch.nn.functional.layer_norm(x, x.shape[1:], w_weight, w_bias, EPS)


def library(x, w_weight, w_bias):
    return torch.nn.functional.layer_norm(x, x.shape[1:], w_weight, w_bias, EPS)


def library_compiled(x, w_weight, w_bias):
    return compiled(library, x)(x, w_weight, w_bias)


def cost(x, w_weight, w_bias):
    return {"dram_bytes": 2 * x.nbytes + w_weight.nbytes + w_bias.nbytes}  # read x, weight and bias, write y


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, n_cols: tl.constexpr, eps, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        acc += tl.load(x_ptr + row_start + off + cols, mask=off + cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(acc, 0) / n_cols
    acc = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, other=0.0).to(tl.float32)
        diff = tl.where(mask, x - mean, 0.0)  # lanes beyond the row hold 0, which is not the mean
        acc += diff * diff
    rstd = tl.rsqrt(tl.sum(acc, 0) / n_cols + eps)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + off + cols, mask=mask).to(tl.float32)
        bias = tl.load(bias_ptr + off + cols, mask=mask).to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, (x - mean) * rstd * weight + bias, mask=mask)


def run(x, w_weight, w_bias):
    x, w_weight, w_bias = x.contiguous(), w_weight.contiguous(), w_bias.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        layer_norm_kernel[(rows,)](x, w_weight, w_bias, y, columns, EPS, BLOCK=1024, num_warps=8)
    return y
