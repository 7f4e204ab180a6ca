"""Multiply two matrices in 16 bits, 64 x 64 of the answer a program: 32 FLOP for each byte that the caches deliver.

c = a @ b, summed in float32, by the kernel of `optimized_matmul_pipelined.py`. Its four warps hold 64 x 64 sums:

    registers of sums        64 * 64 / 128 threads = 32 a thread     of 255
    a step of 64 along k     (64 + 64) * 64 * 2 bytes = 16 KiB for 2 * 64^3 FLOP
    all of 4096^3            4096^3 * (1/64 + 1/64) * 2 bytes = 4.3 GB from the caches

Several programs fit on an SM, and one computes while another waits.

Predict before you measure: `optimized_tile_size.py` takes the tile that the size names, from 64 x 64 to 256 x 256. The
bytes shrink with every step: which tile is the best, and what happens at the largest?
"""

import torch
import triton
import triton.language as tl
from operands import operand, product_cost

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 127, "n": 129, "k": 65}, "check/one": {"m": 1, "n": 1, "k": 1, "tile": "256x256"},
    "check/row": {"m": 1, "n": 257, "k": 131, "tile": "64x256"}, "check/no k": {"m": 3, "n": 5, "k": 0},
    "check/tiles": {"m": 389, "n": 269, "k": 7, "tile": "256x128"},
    "check/a transposed": {"m": 67, "n": 129, "k": 131, "transposed": "a", "tile": "64x128"},
    "check/both transposed": {"m": 67, "n": 129, "k": 131, "transposed": "ab", "tile": "128x128"},
    "default": {}, "large/64x64": {"tile": "64x64"}, "large/64x128": {"tile": "64x128"},
    "large/128x64": {"tile": "128x64"}, "large/128x128": {"tile": "128x128"}, "large/64x256": {"tile": "64x256"},
    "large/256x64": {"tile": "256x64"}, "large/128x256": {"tile": "128x256"}, "large/256x128": {"tile": "256x128"},
    "large/256x256": {"tile": "256x256"},  # its sums alone would take every register
}  # fmt: skip
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
    down, across = 64, 64
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
