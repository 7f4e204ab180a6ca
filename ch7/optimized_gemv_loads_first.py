"""Multiply a weight matrix by one token's vector, all loads before the first sum: a barrier holds them together.

Problem: `optimized_gemv_rows.py` loads its tile before it adds, as its text says. The compiler sorts: it puts each load
right before its sum, since that needs fewer registers. So a lane has one to three loads on the way, however large its
tile is.

Idea: one line, a barrier between the loads of W and the rest. The compiler moves no load across it, so a lane asks for
all 32 first, and they arrive in 128 registers. The barrier waits for the other warp to have asked, not for the answers.

Cost: registers, so fewer programs on an SM. What counts is what is on the way:

    4.8 TB/s * 1 us                                 4.8 MB keep an H200's memory busy (datasheet, 1 us assumed)
    32,000 x 2048    at most 64 warps on an SM      132 * 64 * 32 lanes * 16 bytes = 4.3 MB with one load a lane
    32 x 65,536      32 programs of 8 warps         32 * 256 lanes * 16 bytes = 0.13 MB with one load, 4.2 MB with 32

A row longer than 65,536 does not fit into registers, and would spill.

Predict: at which of the two sizes does it gain more on `optimized_gemv_rows.py`?
"""

import torch
import triton
import triton.language as tl

VERSUS = "rows"
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
    tl.debug_barrier()  # all of w is asked for before what follows
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
