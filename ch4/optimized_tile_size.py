"""Multiply two matrices in 16 bits with the tile that the size names: a larger one reads less and needs more registers.

Problem: the tile of `baseline_tile_size.py` fetches 4.3 GB at 4096^3.
Idea: the same kernel with a larger tile, and fewer bytes.

    tile         bytes     sums a thread      tile         bytes     sums a thread
    64 x 64      4.3 GB    32                 64 x 256     2.7 GB    128
    64 x 128     3.2 GB    64                 128 x 256    1.6 GB    128
    128 x 128    2.1 GB    64                 256 x 256    1.1 GB    256, and a thread may have 255 registers

Cost: the sums lie in the registers of 4 or 8 warps (from capability 10.0 on, in a memory of the tensor cores). A
register too many is spilled: written to memory and read again, in every step of the loop.
`python benchmark.py --xray tile_size --size large` counts the instructions that do it.
Predict: the tile of 256 x 256 fetches a quarter of the bytes of 64 x 64. What is the ratio at `large/256x256`?
"""

import torch
import triton
import triton.language as tl
from matrices import operand
from shared_memory import stages_that_fit
from tile_order import swizzle

REQUIRES = {"capability": (8, 0)}
BLOCK_K = tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
STAGES = 3  # at most: as many as fit in shared memory


def inputs(m=4096, n=4096, k=4096, tile="128x256", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device), "tile": tile}


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
    block_m, block_n = map(int, tile.split("x"))
    stages = stages_that_fit(a, STAGES, (block_m + block_n) * BLOCK_K.value)
    return {"block_m": block_m, "block_n": block_n, "stages": stages}


def run(a, b, tile, block_m, block_n, stages):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    warps = 4 if block_m == 64 else 8  # four for each 64 rows, for the instructions of capability 9.0; 8 at most
    grid, strides = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),), (*a.stride(), *b.stride())
    matmul_kernel[grid](a, b, c, M, N, K, *strides, block_m, block_n, num_warps=warps, num_stages=stages)
    return c
