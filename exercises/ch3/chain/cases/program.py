"""RMS norm of every row: six operations of torch, or one Triton kernel with a program for each row."""

import torch
import triton
import triton.language as tl

SIZES = {
    "square": {"rows": 64, "columns": 64}, "wide": {"rows": 8, "columns": 1000}, "narrow": {"rows": 200, "columns": 24},
    "unseen": {"rows": 37, "columns": 88},
}  # fmt: skip


def inputs(rows, columns, device="cuda"):
    return {"x": torch.randn(rows, columns, device=device), "w_weight": torch.randn(columns, device=device)}


def run(x, w_weight):
    squares = torch.square(x)
    mean = squares.mean(1, keepdim=True)
    shifted = mean + 1e-5
    scale = torch.rsqrt(shifted)
    scaled = x * scale
    return scaled * w_weight


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + cols, mask=mask)
    scale = tl.rsqrt(tl.sum(x * x, 0) / n_cols + 1e-5)
    tl.store(y_ptr + row * n_cols + cols, x * scale * weight, mask=mask)


def fused(x, w_weight):
    rows, columns = x.shape
    y = torch.empty_like(x)
    rms_norm_kernel[(rows,)](x, w_weight, y, columns, BLOCK=triton.next_power_of_2(columns))
    return y
