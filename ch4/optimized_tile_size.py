"""Multiply two matrices in 16 bits with the tile that the size names: a larger one reads less, until registers end.

c = a @ b, summed in float32. The same kernel; the sums of a tile stay in the registers of its 4 or 8 warps, and from
capability 10.0 on in a memory of the tensor cores. All of 4096^3, from the caches, and registers a thread:

    tile         bytes     sums       tile         bytes     sums
    64 x 64      4.3 GB    32         64 x 256     2.7 GB    128
    64 x 128     3.2 GB    64         128 x 256    1.6 GB    128
    128 x 128    2.1 GB    64         256 x 256    1.1 GB    256    of 255 that a thread may have

At 256 x 256 what does not fit is spilled: written to memory and read again at every step of the loop, by each of 256
threads. `python benchmark.py --xray tile_size --size large` counts the instructions that do it.

Predict before you measure: 64 x 256 and 256 x 64 read as much as each other. Are they equally fast? Where is the cliff,
and on which GPUs is there none?
"""

import torch
import triton
import triton.language as tl
from operands import operand, product_cost

REQUIRES = {"capability": (8, 0)}
BLOCK_K = tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
STAGES = 3  # at most: what fits in shared memory


def inputs(m=4096, n=4096, k=4096, tile="128x256", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, 1, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, 1, device), "tile": tile}


def reference(a, b, tile):
    return a @ b


def library(a, b, tile):
    return a @ b


def cost(a, b, tile):
    return product_cost(a, b)


@triton.jit
def place(pid, down, across, GROUP_M: tl.constexpr):
    first = pid // (GROUP_M * across) * GROUP_M
    height = min(down - first, GROUP_M)  # the last group's may be lower
    within = pid % (GROUP_M * across)
    return first + within % height, within // height


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_down, a_across, b_down, b_across, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    i, j = place(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    row = i * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_down, a_across = tl.cast(a_down, tl.int64), tl.cast(a_across, tl.int64)  # times a stride 32 bits may overflow
    b_down, b_across = tl.cast(b_down, tl.int64), tl.cast(b_across, tl.int64)
    a_at = a_ptr + row % m * a_down + inner[None, :] * a_across  # beyond the last row: any, its sums are not stored
    b_at = b_ptr + inner[:, None] * b_down + column % n * b_across
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total)
        a_at += BLOCK_K * a_across
        b_at += BLOCK_K * b_down
    tl.store(c_ptr + row.to(tl.int64) * n + column, total, mask=(row < m) & (column < n))


def setup(a, b, tile):
    down, across = map(int, tile.split("x"))
    shared = 0 if a.is_cpu else torch.cuda.get_device_properties(a.device).shared_memory_per_block_optin
    a_stage = (down + across) * BLOCK_K.value * a.element_size()
    return {"down": down, "across": across, "stages": max(min(STAGES, shared // a_stage), 1)}


def run(a, b, tile, down, across, stages):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    warps = 4 if down == 64 else 8  # four for every 64 rows, as the instructions of capability 9.0 want them: 8 at most
    grid, strides = (triton.cdiv(m, down) * triton.cdiv(n, across),), (*a.stride(), *b.stride())
    matmul_kernel[grid](a, b, c, m, n, k, *strides, down, across, num_warps=warps, num_stages=stages)
    return c
