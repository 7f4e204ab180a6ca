"""RMS norm of every row in two passes, the second out of a cache: what the first reads is to stay there until then.

Problem: `optimized_rms_norm_registers.py` keeps a row in registers. A wide row fills those of an SM, so few programs
fit, and while they wait for their sum few loads are in flight.

Idea: read a row twice, as `baseline_rms_norm.py` does, but in few loads a thread, which say what is to leave the caches
first:

    first pass     evict_last     will be read again, and soon
    second pass    evict_first    was read for the last time

Nothing of a row is kept in registers, so an SM is full of threads: some load while others wait for their sum.

Cost: each element comes from memory once and from L2 once more. What must stay in L2 between the passes:

    16,384 columns, 2 programs on each of 132 SMs    2 * 132 * 64 KiB = 16.5 MiB

A block has 4096 lanes, however short the row: at 768 columns 3328 of them have nothing to load.

Predict: is it faster or slower than `optimized_rms_norm_registers.py` at 768 columns, and at 16,384?
"""

import torch
import triton
import triton.language as tl

VERSUS = "registers"
EPS = 1e-5
BLOCK = 4096  # elements at a time
REGISTERS = 32  # a thread's at most: 2048 threads share an SM


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, w_weight = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
    return {"x": x.to(getattr(torch, dtype)), "w_weight": w_weight.to(getattr(torch, dtype))}


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, n_cols: tl.constexpr, eps, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        acc += x * x
    rstd = tl.rsqrt(tl.sum(acc, 0) / n_cols + eps)
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + off + cols, mask=mask, eviction_policy="evict_last").to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, x * rstd * weight, mask=mask)


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    warps = BLOCK * x.element_size() // 512  # a load of 16 bytes a lane
    if y.numel():
        rms_norm_kernel[(rows,)](x, w_weight, y, columns, EPS, BLOCK=BLOCK, num_warps=warps, maxnreg=REGISTERS)
    return y
