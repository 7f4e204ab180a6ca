"""Multiply 16 rows by a long matrix with k split in 4, added up by atomics: one workspace for all, no fixed order.

Problem: `optimized_split_k.py` writes 1 MiB of partial sums and reads it again.
Idea: 256 programs add their sums, element by element, to a result in float32 that L2 holds.

    set to zero    16 * 4096 * 4 bytes = 256 KiB written
    atomic adds    4 * 16 * 4096 = 262,144 of them, 4 to each address
    to float16     256 KiB read, 128 KiB written

Cost: 3 launches. The order of the 4 additions is chance, and so are the last bits of a sum: (a + b) + c is not
a + (b + c). Two calls with equal inputs may differ. In float16, without the copy in float32, each addition would round.
Predict: is it faster than the two launches of `optimized_split_k.py`, or slower?
"""

import torch
import triton
import triton.language as tl
from alignment import assume_multiple, unit

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
SKINNY = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}  # up to 16 rows
SQUARE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}
PROGRAMS = 264  # where k is split, no more: 2 for each of 132 SMs


def inputs(m=16, n=4096, k=16_384, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(m, k, dtype=dtype, device=device), "w_b": w_b.T if transposed else w_b}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, k_per_split, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    N, K = assume_multiple(N, UNIT), assume_multiple(K, UNIT)  # of what lengths and strides are multiples
    stride_am, stride_ak = assume_multiple(stride_am, UNIT), assume_multiple(stride_ak, UNIT)
    stride_bk, stride_bn = assume_multiple(stride_bk, UNIT), assume_multiple(stride_bn, UNIT)
    num_pid_n, num_tiles = tl.cdiv(N, BLOCK_N), tl.cdiv(N, BLOCK_N) * tl.cdiv(M, BLOCK_M)
    pid, pid_k = tl.program_id(0) % num_tiles, tl.program_id(0) // num_tiles
    # 64 bits: offsets may exceed 2^31
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    k_start = pid_k * k_per_split
    a_ptrs = a_ptr + offs_m * stride_am + (k_start + offs_k).to(tl.int64)[None, :] * stride_ak
    b_ptrs = b_ptr + (k_start + offs_k).to(tl.int64)[:, None] * stride_bk + offs_n * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(k_start, min(k_start + k_per_split, K), BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m < M) & (offs_k[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    tl.atomic_add(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N), sem="relaxed")


def plan(M, N, K):
    """The configuration, how many tiles there are and how many programs share each, and how much of k one takes."""
    config = SKINNY if SKINNY["BLOCK_M"] >= M else SQUARE
    tiles = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
    # 17 to 64 rows: half of the programs write half as many sums. But at least two share a tile
    halved = config is SQUARE and SQUARE["BLOCK_M"] >= M and 4 * tiles <= PROGRAMS
    programs = PROGRAMS // 2 if halved else PROGRAMS
    steps = triton.cdiv(K, config["BLOCK_K"])
    each = max(triton.cdiv(steps, max(programs // max(tiles, 1), 1)), 1)
    return config, tiles, max(triton.cdiv(steps, each), 1), each * config["BLOCK_K"]


def run(x, w_b):
    (M, K), N = x.shape, w_b.shape[1]
    c = torch.zeros(M, N, device=x.device)
    config, tiles, splits, k_per_split = plan(M, N, K)
    if c.numel():
        strides = *x.stride(), *w_b.stride()
        config = {**config, "UNIT": unit(x, N, K, *strides)}
        matmul_kernel[(tiles * splits,)](x, w_b, c, M, N, K, k_per_split, *strides, **config)
    return c.to(x.dtype)
