"""Softmax of rows longer than the registers: maximum and sum in one pass, and only what L2 still has is read again.

Problem: at 65,536 columns the registers of `optimized_softmax.py` are too few for a row.

Idea: a running sum can be kept while the maximum is still unknown. When a larger one appears, the sum so far is scaled:

    sum <- sum * exp(old maximum - new maximum) + exp(x - new maximum)

So one pass finds both, and a second writes the result. A program of 32 warps keeps the first 16,384 elements of its row
in registers; only the rest is read again, soon enough for L2 to have it. The loads say so: what is to be read again is
to leave L2 last, all else first.

    65,536 columns of float32, one program on each of 132 SMs    132 * 192 KiB = 25 MiB to be read again

Cost: at 65,536 columns, 2 elements moved in memory, and 0.75 more read from L2. The code is longer, with one exp more
for each step of the running sum. Up to 16,384 columns nothing is read again, and the code is as long.

Predict: which of the two one-pass versions is faster at 16,384 columns, and which at 65,536?
"""

import torch
import triton
import triton.language as tl

VERSUS = ""
WARPS = 32  # at most: one program then fills an SM
ELEMENTS = 16  # of the row that a thread holds, of the 64 registers that each of 1024 has


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    return {"x": torch.randn(rows, columns, device=device).to(getattr(torch, dtype))}


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, HELD: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    held_cols = tl.arange(0, HELD)
    held = tl.load(
        x_ptr + row_start + held_cols, mask=held_cols < n_cols, other=float("-inf"), eviction_policy="evict_first"
    )
    cols = tl.arange(0, BLOCK // VECTOR)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    acc_max = tl.full((BLOCK // VECTOR,), float("-inf"), tl.float32)  # each thread's own, for the elements of one load
    acc_sum = tl.zeros((BLOCK // VECTOR,), tl.float32)
    for off in range(HELD, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, other=float("-inf"), eviction_policy="evict_last")
        old_max, acc_max = acc_max, tl.maximum(acc_max, tl.max(x, 1).to(tl.float32))
        # -inf alone adds nothing, and -inf - -inf would be NaN
        safe_max = tl.where(acc_max == float("-inf"), 0.0, acc_max)
        exp = tl.exp(x.to(tl.float32) - safe_max[:, None])
        acc_sum = acc_sum * tl.exp(old_max - safe_max) + tl.sum(exp, 1)
    held = held.to(tl.float32)
    row_max = tl.maximum(tl.max(acc_max, 0), tl.max(held, 0))
    exp = tl.exp(held - row_max)
    scale = 1 / (tl.sum(acc_sum * tl.exp(acc_max - row_max), 0) + tl.sum(exp, 0))
    tl.store(y_ptr + row_start + held_cols, exp * scale, mask=held_cols < n_cols, eviction_policy="evict_first")
    for off in range(HELD, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, tl.exp(x - row_max) * scale, mask=mask, eviction_policy="evict_first")


def run(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        held = min(triton.next_power_of_2(columns), WARPS * 32 * ELEMENTS)
        warps, vector = max(held // (32 * ELEMENTS), 1), 16 // x.element_size()
        block = max(held // 2, vector)  # of the rest at a time: 8 elements a thread
        softmax_kernel[(rows,)](x, y, columns, HELD=held, BLOCK=block, VECTOR=vector, num_warps=warps)
    return y
