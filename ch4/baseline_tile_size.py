"""Multiply two matrices in 16 bits, a tile of 64 x 64 a program: 32 FLOP for each byte that the caches deliver.

Problem: c = a @ b, summed in float32, by the kernel of `optimized_matmul_pipelined.py` in grouped order, with a small
tile.

    registers of sums    64 * 64 / 128 threads = 32 a thread, of 255
    a step of k          (64 + 64) * 64 * 2 bytes = 16 KiB for 2 * 64^3 FLOP
    all of 4096^3        4096^3 * (1/64 + 1/64) * 2 bytes = 4.3 GB from the caches

Cost: many bytes from L2. Several programs fit on an SM, and one of them computes while another one waits.
Predict: `optimized_tile_size.py` takes the tile that the size names: 64, 128 or 256 rows and columns, with 4 warps for
64 rows and 8 warps for more. Which tile is the fastest at 4096^3 on an H200?
"""

import torch
import triton
import triton.language as tl
from matrices import operand, product_cost
from shared_memory import stages_that_fit
from tile_order import swizzle

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 67, "n": 129, "k": 65, "tile": "64x128"}, "check/one": {"m": 1, "n": 1, "k": 1, "tile": "256x256"},
    "check/row": {"m": 1, "n": 257, "k": 131, "tile": "64x256"},
    "check/tiles": {"m": 389, "n": 269, "k": 7, "tile": "256x128"},
    "check/a transposed": {"m": 67, "n": 129, "k": 131, "transposed": "a", "tile": "128x256"},
    "check/both transposed": {"m": 67, "n": 129, "k": 131, "transposed": "ab", "tile": "128x128"},
    "count": {"m": 512, "n": 512, "k": 512}, "default": {}, "large/64x64": {"tile": "64x64"},
    "large/128x128": {"tile": "128x128"}, "large/256x256": {"tile": "256x256"},  # its sums would take every register
}  # fmt: skip
BLOCK_K = tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
STAGES = 3  # at most: as many as fit in shared memory


def inputs(m=4096, n=4096, k=4096, tile="128x256", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device), "tile": tile}


def reference(a, b, tile):
    return a @ b


def library(a, b, tile):
    return a @ b


def cost(a, b, tile):
    return product_cost(a, b)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = swizzle(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    # 64 bits: a stride times an index may exceed 2^31
    stride_am, stride_ak = tl.cast(stride_am, tl.int64), tl.cast(stride_ak, tl.int64)
    stride_bk, stride_bn = tl.cast(stride_bk, tl.int64), tl.cast(stride_bn, tl.int64)
    # Rows and columns beyond the last one wrap around: their sums are not stored
    a_ptrs = a_ptr + offs_m % M * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n % N * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def setup(a, b, tile):
    block_m, block_n = 64, 64
    stages = stages_that_fit(a, STAGES, (block_m + block_n) * BLOCK_K.value)
    return {"block_m": block_m, "block_n": block_n, "stages": stages}


def run(a, b, tile, block_m, block_n, stages):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    warps = 4 if block_m == 64 else 8  # four for each 64 rows, for the instructions of capability 9.0; 8 at most
    grid, strides = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),), (*a.stride(), *b.stride())
    matmul_kernel[grid](a, b, c, M, N, K, *strides, block_m, block_n, num_warps=warps, num_stages=stages)
    return c
