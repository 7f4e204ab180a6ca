"""RMS norm backward as everyone tries it first: an atomic addition for every element of dweight.

Problem: a program takes a row. With x_hat = x * rstd and g = dy * weight, the row of dx needs only that row:

    dx = (g - x_hat * mean(g * x_hat)) * rstd

But dweight = sum(dy * x_hat) goes down the columns, over all rows. Each program adds its row to it, element by element,
and addresses are few:

    4096 rows * 8192 columns = 33,554,432 atomic additions, 4096 to each address

Cost: dx reads two matrices and writes one, 384 MiB at 4096 x 8192 in float32; the sum adds little to that. The atomic
additions are float32 whatever the inputs are: in float16 a sum of 4096 would lose what is added to it.

Predict: `baseline_layer_norm_backward.py` moves the same bytes and makes twice as many atomic additions. If these are
the limit of both, how many times this version's time does it take?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled

SIZES = {
    "check": {"rows": 3, "columns": 127},
    "check/one": {"rows": 1, "columns": 7},
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
    "large/4096x16384": {"columns": 16_384},
}  # fmt: skip
ELEMENTS = 16  # of a row that a thread holds, of x and of dy


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, dy = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    w_weight = torch.randn(columns, device=device).to(x.dtype)
    rstd = torch.rsqrt(x.float().square().mean(1, keepdim=True) + 1e-5)  # float32, as the forward saves it
    return {"x": x, "w_weight": w_weight, "rstd": rstd, "dy": dy}


def reference(x, w_weight, rstd, dy):
    x_hat, g = x * rstd, dy * w_weight
    return (g - x_hat * (g * x_hat).mean(1, keepdim=True)) * rstd, (dy * x_hat).sum(0)


def library(x, w_weight, rstd, dy):
    if x.is_cuda:
        return torch.ops.aten._fused_rms_norm_backward(dy, x, x.shape[1:], rstd, w_weight, [True] * 2)
    return reference(x, w_weight, rstd, dy)  # torch has it for GPUs only


def formula(x, w_weight, rstd, dy):
    dx, dweight = reference(x.float(), w_weight.float(), rstd, dy.float())
    return dx.to(x.dtype), dweight.to(w_weight.dtype)


def library_compiled(x, w_weight, rstd, dy):
    return compiled(formula, x)(x, w_weight, rstd, dy)


def cost(x, w_weight, rstd, dy):
    return {"dram_bytes": 3 * x.nbytes + rstd.nbytes + 2 * w_weight.nbytes}  # read all, write dx, dweight


@triton.jit
def rms_norm_backward_kernel(
    x_ptr, w_ptr, rstd_ptr, dy_ptr, dx_ptr, dweight_ptr, n_cols: tl.constexpr, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    row = tl.program_id(0)
    row_start = row.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    x_hat = x * rstd
    g = dy * weight
    dx = (g - x_hat * (tl.sum(g * x_hat, 0) / n_cols)) * rstd
    tl.store(dx_ptr + row_start + cols, dx, mask=mask)
    tl.atomic_add(dweight_ptr + cols, dy * x_hat, mask=mask)


def run(x, w_weight, rstd, dy):
    x, w_weight, rstd, dy = (each.contiguous() for each in (x, w_weight, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    dweight = torch.zeros(columns, device=x.device)
    if x.numel():
        block = triton.next_power_of_2(columns)
        warps = min(max(block // (32 * ELEMENTS), 1), 32)
        rms_norm_backward_kernel[(rows,)](x, w_weight, rstd, dy, dx, dweight, columns, BLOCK=block, num_warps=warps)
    return dx, dweight.to(w_weight.dtype)
