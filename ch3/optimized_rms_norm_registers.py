"""RMS norm of every row in one pass: a row is read into registers, and each element is read once and written once.

Problem: `baseline_rms_norm.py` reads a row twice.

Idea: y = x / sqrt(mean(x^2) + eps) * weight, along a row. Between the mean of the squares and the result the row stays
in the registers of its threads, 32 elements in each:

    1024 columns     32 threads    a warp: its lanes add among themselves
    8192 columns    256 threads    8 warps, which exchange their sums once, through shared memory

The block is the next power of two; its lanes beyond the row hold zeros, which add nothing.

Cost: 2 elements moved instead of 3. Registers: a row of 8192 columns of float32 is 32 KiB, of the 256 KiB of an SM.

Predict: at 1024 columns the baseline has 8 rows of 4 KiB in flight in an SM, and L1 has 256 KiB. How many times faster
is this version there?
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5
ELEMENTS = 32  # of a row that a thread holds: 8 loads of 16 bytes in float32, 4 in 16 bits


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, w_weight = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
    return {"x": x.to(getattr(torch, dtype)), "w_weight": w_weight.to(getattr(torch, dtype))}


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, n_cols: tl.constexpr, eps, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, 0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    tl.store(y_ptr + row_start + cols, x * rstd * weight, mask=mask)


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        warps = min(max(block // (32 * ELEMENTS), 1), 32)
        rms_norm_kernel[(rows,)](x, w_weight, y, columns, EPS, BLOCK=block, num_warps=warps)
    return y
