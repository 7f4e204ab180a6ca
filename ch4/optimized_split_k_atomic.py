"""Multiply 16 rows by a long matrix with k split in 4, added up by atomics: one workspace for all, no fixed order.

Problem: `optimized_split_k_split.py` writes 1 MiB of partial sums and reads it again.
Idea: 256 programs add their sums, element by element, to a result in float32 that L2 holds.

    set to zero    16 * 4096 * 4 bytes = 256 KiB written
    atomic adds    4 * 16 * 4096 = 262,144 of them, 4 to each address
    to float16     256 KiB read, 128 KiB written

Cost: 3 launches here, too. The order of the 4 additions is chance, and so are the last bits of a sum: (a + b) + c is
not a + (b + c). Two calls with equal inputs may differ. In float16, without the copy in float32, each addition would
round.
Predict: is it faster than `optimized_split_k_split.py`, or slower?
"""

import torch
import triton
import triton.language as tl

VERSUS = "split"
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
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0).to(tl.int64)  # 64 bits: offsets may exceed 2^31
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    pid_k, splits = tl.program_id(1), tl.num_programs(1)  # which part of k is this program's
    k_per_split = tl.cdiv(tl.cdiv(K, BLOCK_K), splits) * BLOCK_K
    for k in range(pid_k * k_per_split, min((pid_k + 1) * k_per_split, K), BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N), sem="relaxed")


def plan(M, N, K):
    """The configuration, how many tiles there are, and how many programs share the k of each."""
    config = SKINNY if SKINNY["BLOCK_M"] >= M else SQUARE
    tiles = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
    return config, tiles, max(min(PROGRAMS // max(tiles, 1), triton.cdiv(K, config["BLOCK_K"])), 1)


def run(x, w_b):
    (M, K), N = x.shape, w_b.shape[1]
    config, tiles, splits = plan(M, N, K)
    c = torch.zeros(M, N, device=x.device)
    matmul_kernel[(tiles, splits)](x, w_b, c, M, N, K, *x.stride(), *w_b.stride(), **config)
    return c.to(x.dtype)
