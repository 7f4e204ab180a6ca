"""Layer norm of every row in one pass: a row is read into registers, and each element is read once and written once.

Problem: `baseline_layer_norm.py` reads a row three times.

Idea: mean, variance and result are computed from the registers that hold the row, 32 elements in each thread (more in a
row of over 32,768, since 1024 threads are the most):

    1024 columns     32 threads    a warp: its lanes add among themselves
    8192 columns    256 threads    8 warps, which exchange their sums twice, through shared memory

Cost: 2 elements moved instead of 4. The block is the next power of two. Its lanes beyond the row must count neither in
the mean, where a zero adds nothing, nor in the variance, where a zero would be as far off as the mean is. Every program
also reads weight and bias, 2 rows for each row of x; all programs read the same, so these come from a cache.

Predict: at 4096 x 8192 the baseline has 8 rows of 32 KiB in flight on each of an H200's 132 SMs, 33 MiB, and an H200
has 60 MiB of L2. Is this version still twice as fast?
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5
ELEMENTS = 32  # of a row that a thread holds: 8 loads of 16 bytes in float32, 4 in 16 bits


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = 3 + torch.randn(rows, columns, device=device)  # a mean that is not 0, as after a residual
    w_weight, w_bias = torch.randn(columns, device=device), torch.randn(columns, device=device)
    dtype = getattr(torch, dtype)
    return {"x": x.to(dtype), "w_weight": w_weight.to(dtype), "w_bias": w_bias.to(dtype)}


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, n_cols: tl.constexpr, eps, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n_cols
    diff = tl.where(mask, x - mean, 0.0)  # lanes beyond the row hold 0, which is not the mean
    rstd = tl.rsqrt(tl.sum(diff * diff, 0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(y_ptr + row_start + cols, diff * rstd * weight + bias, mask=mask)


def run(x, w_weight, w_bias):
    x, w_weight, w_bias = x.contiguous(), w_weight.contiguous(), w_bias.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        warps = min(max(block // (32 * ELEMENTS), 1), 32)
        layer_norm_kernel[(rows,)](x, w_weight, w_bias, y, columns, EPS, BLOCK=block, num_warps=warps)
    return y
