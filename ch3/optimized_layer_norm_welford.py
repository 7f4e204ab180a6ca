"""Layer norm of every row in two passes instead of three: mean and variance are found together (Welford).

Problem: `optimized_layer_norm_registers.py` keeps a row in registers. A wide row fills those of an SM, so few programs
fit, and while they wait for their sums few loads are in flight. Without the row, `baseline_layer_norm.py` reads it for
the mean, then for the variance, then for the result.

Idea: find both statistics in one pass. Each lane keeps the mean of its own elements and the sum of their squared
distances from it, and updates both with every element:

    mean <- mean + (x - mean) / count
    m2   <- m2 + (x - mean before) * (x - mean after)

At the end the statistics of all lanes are combined:

    sum of squared distances = sum over lanes of (their own m2 + their count * (their mean - mean)^2)

Nothing of a row is kept in registers. With at most 32 of them a thread (`maxnreg`) an SM has room for all 2048 threads
that it can have: some load while others wait for their sums.

Cost: 3 elements moved, the second read from L2 where it still has the row. Each element costs a division and an update
of two numbers, not an addition to one. A block has 4096 lanes, however short the row.

Predict: why not add up x and x^2, which is simpler and needs one pass, too? What goes wrong in a row of numbers around
10,000 whose variance is 1, in float32?
"""

import torch
import triton
import triton.language as tl

VERSUS = "registers"
EPS = 1e-5
BLOCK = 4096  # elements at a time
REGISTERS = 32  # a thread's at most: 2048 threads share an SM


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = 3 + torch.randn(rows, columns, device=device)  # a mean that is not 0, as after a residual
    w_weight, w_bias = torch.randn(columns, device=device), torch.randn(columns, device=device)
    dtype = getattr(torch, dtype)
    return {"x": x.to(dtype), "w_weight": w_weight.to(dtype), "w_bias": w_bias.to(dtype)}


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, n_cols: tl.constexpr, eps, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    means, m2 = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, other=0.0).to(tl.float32)
        diff = tl.where(mask, x - means, 0.0)
        means += diff / (off // BLOCK + 1)
        m2 += diff * (x - means)
    count = (n_cols - cols + BLOCK - 1) // BLOCK  # of elements of each lane
    mean = tl.sum(means * count, 0) / n_cols
    variance = tl.sum(m2 + count * (means - mean) * (means - mean), 0) / n_cols
    rstd = tl.rsqrt(variance + eps)
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
    warps = BLOCK * x.element_size() // 512  # a load of 16 bytes a lane
    if y.numel():
        layer_norm_kernel[(rows,)](
            x, w_weight, w_bias, y, columns, EPS, BLOCK=BLOCK, num_warps=warps, maxnreg=REGISTERS
        )
    return y
