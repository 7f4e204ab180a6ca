"""Layer norm backward as everyone tries it first: an atomic addition for every element of dweight and dbias.

Problem: a program takes a row. With x_hat = (x - mean) * rstd and g = dy * weight, the row of dx needs only that row:

    dx = (g - x_hat * mean(g * x_hat) - mean(g)) * rstd

But dweight = sum(dy * x_hat) and dbias = sum(dy) go down the columns, over all rows. Each program adds its row to them,
element by element, and addresses are few:

    4096 rows * 8192 columns * 2 = 67,108,864 atomic additions, 4096 to each address

Cost: dx reads two matrices and writes one, 384 MiB at 4096 x 8192 in float32; the sums add little to that. The atomic
additions are float32 whatever the inputs are: in float16 a sum of 4096 would lose what is added to it.

Predict: in float16 the bytes are half of those in float32, and the atomic additions are as many. How many times less
does this version take at 4096 x 8192?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

SIZES = {
    "check": {"rows": 3, "columns": 127},
    "check/one": {"rows": 1, "columns": 7},  # dx of one or two columns is 0: only rounding errors would be compared
    "check/narrow": {"rows": 71, "columns": 5},  # several rows for a lock or a program
    "check/wide": {"rows": 2, "columns": 8195}, "check/fp16": {"rows": 33, "columns": 33, "dtype": "float16"},
    "check/bf16": {"rows": 3, "columns": 1025, "dtype": "bfloat16"},
    "check/tuned/row/fp16": {"rows": 1, "columns": 1031, "dtype": "float16"},
    "check/tuned/rounds": {"rows": 41, "columns": 1025},  # of all programs
    "check/tuned/shared": {"rows": 5, "columns": 2051},
    "check/tuned/wide/fp16": {"rows": 2, "columns": 8195, "dtype": "float16"},
    "check/tuned/many": {"rows": 300, "columns": 5},  # of more programs than are added up at once
    "count": {"rows": 256, "columns": 1024},
    "default": {"rows": 4096, "columns": 8192},  # 128 MiB of float32: larger than any L2
    "large/4096x8192/fp16": {"dtype": "float16"},
}  # fmt: skip
ELEMENTS = 16  # of a row that a thread holds, of x and of dy


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = (3 + torch.randn(rows, columns, device=device)).to(getattr(torch, dtype))
    w_weight, dy = torch.randn(columns, device=device), torch.randn(rows, columns, device=device)
    mean = x.float().mean(1, keepdim=True)  # float32, as the forward saves them
    rstd = torch.rsqrt(x.float().var(1, correction=0, keepdim=True) + 1e-5)
    return {"x": x, "w_weight": w_weight.to(x.dtype), "mean": mean, "rstd": rstd, "dy": dy.to(x.dtype)}


def reference(x, w_weight, mean, rstd, dy):
    x_hat, g = (x - mean) * rstd, dy * w_weight
    dx = (g - x_hat * (g * x_hat).mean(1, keepdim=True) - g.mean(1, keepdim=True)) * rstd
    return dx, (dy * x_hat).sum(0), dy.sum(0)


def library(x, w_weight, mean, rstd, dy):
    bias = w_weight  # only its shape and type are used
    return torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[1:], mean, rstd, w_weight, bias, [True] * 3)


def library_compiled(x, w_weight, mean, rstd, dy):
    return compiled(library, x)(x, w_weight, mean, rstd, dy)


def cost(x, w_weight, mean, rstd, dy):
    rows = 3 * x.nbytes + mean.nbytes + rstd.nbytes  # read x, dy and the rows' figures, write dx
    return {"dram_bytes": rows + 3 * w_weight.nbytes}  # read weight, write dweight and dbias


@triton.jit
def layer_norm_backward_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    row = tl.program_id(0)
    row_start = row.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    x_hat = (x - tl.load(mean_ptr + row)) * rstd  # beyond the row dy is 0, and all products with it
    g = dy * weight
    dx = (g - x_hat * (tl.sum(g * x_hat, 0) / n_cols) - tl.sum(g, 0) / n_cols) * rstd
    tl.store(dx_ptr + row_start + cols, dx, mask=mask)
    tl.atomic_add(sums_ptr + cols, dy * x_hat, mask=mask)
    tl.atomic_add(sums_ptr + n_cols + cols, dy, mask=mask)


def run(x, w_weight, mean, rstd, dy):
    x, w_weight, mean, rstd, dy = (each.contiguous() for each in (x, w_weight, mean, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    sums = torch.zeros(2, columns, device=x.device)  # dweight, dbias
    if x.numel():
        block = triton.next_power_of_2(columns)
        warps = min(max(block // (32 * ELEMENTS), 1), 32)
        layer_norm_backward_kernel[(rows,)](
            x, w_weight, mean, rstd, dy, dx, sums, columns, BLOCK=block, num_warps=warps
        )
    return dx, *sums.to(w_weight.dtype)
