"""Multiply 16 rows by a long matrix with k split in 4, in one launch: the last program of a tile adds up its 4 sums.

Problem: `optimized_split_k_split.py` needs a second launch to add up, and a third to round.
Idea: 256 programs write 1 MiB of partial sums. Then each program adds 1 to a counter of its tile. The one that finds 3
there is the last, and adds up the 4 sums, always in the same order:

    write the sums; barrier    all threads of this program have written
    count, acq_rel             a program that counts later sees what was written before
    if last                    read 4 * 4 KiB, write the tile, set the counter to 0

Cost: the last program of a tile reads all sums of the tile alone, one after the other. A second launch has programs on
many SMs for that.
Predict: with a result of 16 x 64 and k = 262,144 one program reads 264 sums of 4 KiB, and all other SMs are idle. Is it
faster than `optimized_split_k_split.py` there, or slower?
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
    a_ptr, b_ptr, partials_ptr, counter_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
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
    offsets, mask, size = offs_m * N + offs_n, (offs_m < M) & (offs_n < N), tl.cast(M, tl.int64) * N
    tl.store(partials_ptr + pid_k * size + offsets, acc, mask=mask)
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr + pid, 1, sem="acq_rel") == splits - 1:
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for i in range(splits):  # .cg: from L2, where the sums are
            acc += tl.load(partials_ptr + i * size + offsets, mask=mask, other=0.0, cache_modifier=".cg")
        tl.store(c_ptr + offsets, acc, mask=mask)
        tl.store(counter_ptr + pid, 0)  # for the next call


def plan(M, N, K):
    """The configuration, how many tiles there are, and how many programs share the k of each."""
    config = SKINNY if SKINNY["BLOCK_M"] >= M else SQUARE
    tiles = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
    return config, tiles, max(min(PROGRAMS // max(tiles, 1), triton.cdiv(K, config["BLOCK_K"])), 1)


def setup(x, w_b):
    tiles = plan(x.shape[0], w_b.shape[1], x.shape[1])[1]
    return {"counter": torch.zeros(tiles, dtype=torch.int32, device=x.device)}


def run(x, w_b, counter):
    (M, K), N = x.shape, w_b.shape[1]
    config, tiles, splits = plan(M, N, K)
    partials, c = torch.empty(splits, M, N, device=x.device), torch.empty(M, N, dtype=x.dtype, device=x.device)
    matmul_kernel[(tiles, splits)](x, w_b, partials, counter, c, M, N, K, *x.stride(), *w_b.stride(), **config)
    return c
