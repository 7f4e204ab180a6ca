"""Multiply a weight matrix by one token's vector, 8 whole rows a program: 32 KiB between its start and its end.

Problem: a program of `baseline_gemv.py` has 4 KiB to read between its start and its end.

Idea: a program takes 8 rows and all of k, in one tile. A lane has 256 elements of it, in 32 loads of 16 bytes:

    8 rows of 2048      2 warps     32 KiB
    8 rows of 8192      8 warps    128 KiB
    1 row of 65,536     8 warps    128 KiB

The tile's width is a power of two; a mask switches off what is beyond the row. x is read once for 8 rows, and the lanes
add up once.

Cost: 4000 programs instead of 32,000, and an eighth of the reads of x. A lane that asks for all of its tile at once
needs a register for each 4 bytes that are on the way:

    32 loads * 16 bytes / 4 bytes = 128 registers, of the 255 that a lane can have

Predict: how many registers has a lane of this kernel (`benchmark.py --xray gemv`), so how many of its 32 loads can be
on the way at a time?
"""

import torch
import triton
import triton.language as tl

ELEMENTS = 256  # of a lane: 32 loads of 16 bytes, if they are of 16 bits
LANES = 256  # of a program, at most: two such tiles are as much as an SM has registers


def inputs(n=32_000, k=2048, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    return {"x": torch.randn(k, **like), "w_weight": torch.randn(n, k, **like) * k**-0.5}


@triton.jit
def gemv_kernel(x_ptr, w_ptr, y_ptr, N, K: tl.constexpr, ROWS: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # 64 bits: there may be more than 2^31 weights
    cols = tl.arange(0, BLOCK_K)
    mask = (rows < N)[:, None] & (cols < K)[None, :]
    w = tl.load(w_ptr + rows[:, None] * K + cols[None, :], mask=mask, other=0.0)
    x = tl.load(x_ptr + cols, mask=cols < K, other=0.0)
    y = tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    tl.store(y_ptr + rows, y, mask=rows < N)


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    n, k = w_weight.shape
    y = torch.empty(n, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(k)
    rows = max(min(LANES * ELEMENTS // block, 8), 1)
    warps = min(max(rows * block // (32 * ELEMENTS), 1), LANES // 32)
    gemv_kernel[(triton.cdiv(n, rows),)](x, w_weight, y, n, k, ROWS=rows, BLOCK_K=block, num_warps=warps)
    return y
