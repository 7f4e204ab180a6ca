"""Multiply 16 rows by a long matrix with k split in 4: 256 programs read it together, and a second launch adds up.

Problem: the 64 programs of `baseline_split_k.py` have too few bytes in flight for all of memory's bandwidth.
Idea: a tile of 16 x 64 belongs to 4 programs, each with 4096 of the 16,384 products of a sum. An SM has room for two
programs and more (30 KiB of shared memory each), so that all run at once:

    256 programs * 3 blocks of 10 KiB = 7.5 MiB in flight, enough for 7.9 TB/s at 1 us

Cost: four partial sums of each element go to memory in float32: 4 * 16 * 4096 * 4 bytes = 1 MiB, written and read.
torch adds them up in a second launch, always in the same order, so that equal inputs give equal bits, and rounds them
in a third. Where tiles fill the GPU there is nothing to split, and these launches only cost time.
Predict: a result of 16 x 64 with k = 262,144 is one tile: one program in the baseline, 264 here (256 with a part of k),
and 42 MB to read. How many times as fast is it?
"""

import torch
import triton
import triton.language as tl

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
    a_ptr, b_ptr, partials_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
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
    partials_ptr += pid_k.to(tl.int64) * M * N
    tl.store(partials_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def plan(M, N, K):
    """The configuration, how many tiles there are, and how many programs share the k of each."""
    config = SKINNY if SKINNY["BLOCK_M"] >= M else SQUARE
    tiles = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
    return config, tiles, max(min(PROGRAMS // max(tiles, 1), triton.cdiv(K, config["BLOCK_K"])), 1)


def run(x, w_b):
    (M, K), N = x.shape, w_b.shape[1]
    config, tiles, splits = plan(M, N, K)
    partials = torch.empty(splits, M, N, device=x.device)
    matmul_kernel[(tiles, splits)](x, w_b, partials, M, N, K, *x.stride(), *w_b.stride(), **config)
    return partials.sum(0).to(x.dtype)
