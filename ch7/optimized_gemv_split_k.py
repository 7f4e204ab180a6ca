"""Multiply a weight matrix by one token's vector in tiles of 8 x 2048: long rows are shared, the last program adds up.

Problem: `optimized_gemv_loads_first.py` has no more programs than rows. Of 32 long rows it makes 32 programs, and most
SMs have nothing to do. A row of 5632 pays for a tile that is 8192 wide.

Idea: the tile is 8 x 2048 by 2 warps, however long k is, and several programs share 8 rows. Each writes its 8 sums in
float32 and counts itself. The one that finds all others counted adds up, always in the same order:

    write the sums; barrier    all lanes of this program have written
    count, acq_rel             a program that counts later sees what was written before
    if last                    add up, write y, set the counter to 0

Cost: W once, as before. 32 rows of 65,536 are 4 * 32 = 128 programs instead of 32; their sums are 4 KiB. Each program
ends with a write, a barrier and an atomic, which is a way to L2 and back, also where k is 2048 and nothing is shared.

Predict: at 32,000 x 2048, is it faster than `optimized_gemv_loads_first.py`, or slower? And with 32 rows of 65,536?
"""

import torch
import triton
import triton.language as tl

VERSUS = "loads_first"
ROWS, BLOCK_K = 8, 2048  # by 2 warps: 256 elements a lane, 128 registers, if they are of 16 bits


def inputs(n=32_000, k=2048, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    return {"x": torch.randn(k, **like), "w_weight": torch.randn(n, k, **like) * k**-0.5}


@triton.jit
def gemv_kernel(
    x_ptr, w_ptr, partials_ptr, counter_ptr, y_ptr, N, K,
    ROWS: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # 64 bits: there may be more than 2^31 weights
    cols = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    mask = (rows < N)[:, None] & (cols < K)[None, :]
    w = tl.load(w_ptr + rows[:, None] * K + cols[None, :], mask=mask, other=0.0)
    tl.debug_barrier()  # all of w is asked for before what follows
    x = tl.load(x_ptr + cols, mask=cols < K, other=0.0)
    y = tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], 1)
    tl.store(partials_ptr + rows * SPLITS + tl.program_id(1), y, mask=rows < N)
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr + tl.program_id(0), 1, sem="acq_rel") == SPLITS - 1:
        split = tl.arange(0, triton.next_power_of_2(SPLITS))[None, :]
        there, partials_ptrs = (rows < N)[:, None] & (split < SPLITS), partials_ptr + rows[:, None] * SPLITS + split
        partials = tl.load(partials_ptrs, mask=there, other=0.0, cache_modifier=".cg")  # from L2, where they are
        tl.store(y_ptr + rows, tl.sum(partials, 1), mask=rows < N)
        tl.store(counter_ptr + tl.program_id(0), 0)  # for the next call


def setup(x, w_weight):
    tiles = triton.cdiv(w_weight.shape[0], ROWS)
    return {"counter": torch.zeros(tiles, dtype=torch.int32, device=x.device)}


def run(x, w_weight, counter):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    n, k = w_weight.shape
    y, splits = torch.empty(n, dtype=x.dtype, device=x.device), triton.cdiv(k, BLOCK_K)
    partials, grid = torch.empty(n, splits, device=x.device), (triton.cdiv(n, ROWS), splits)
    gemv_kernel[grid](x, w_weight, partials, counter, y, n, k, ROWS, BLOCK_K, splits, num_warps=2)
    return y
