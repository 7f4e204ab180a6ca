"""Multiply 16 rows by a long matrix with k split in 4, in one launch: the last program of a tile adds up its 4 sums.

Problem: `optimized_split_k.py` needs a second launch to add up.
Idea: 256 programs write 1 MiB of partial sums. Then each program adds 1 to a counter of its tile. The program that
finds all others counted adds up the 4 sums, always in the same order:

    write the sums; barrier    all threads of this program have written
    count, acq_rel             a program that counts later sees what was written before
    if last                    read 4 * 4 KiB, write the tile, set the counter to 0

Cost: the last program of a tile reads all sums of the tile alone, four at a time. The second launch has programs on
many SMs for that.
Predict: with a result of 16 x 64 and k = 262,144 one program reads 256 sums of 4 KiB, and all other SMs are idle. Is it
faster than `optimized_split_k.py` there, or slower?
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
AT_ONCE = tl.constexpr(4)  # sums that the last one reads at a time


def inputs(m=16, n=4096, k=16_384, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(m, k, dtype=dtype, device=device), "w_b": w_b.T if transposed else w_b}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, partials_ptr, arrived_ptr, c_ptr, M, N, K, k_per_split, splits,
    stride_am, stride_ak, stride_bk, stride_bn,
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
    offsets, mask, size = offs_m * N + offs_n, (offs_m < M) & (offs_n < N), tl.cast(M, tl.int64) * N
    tl.store(partials_ptr + pid_k * size + offsets, acc, mask=mask)
    tl.debug_barrier()
    if tl.atomic_add(arrived_ptr + pid, 1, sem="acq_rel") == splits - 1:
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, splits, AT_ONCE):
            for i in tl.static_range(AT_ONCE):  # independent loads; .cg: from L2, where the sums are
                there, part_ptrs = mask & (start + i < splits), partials_ptr + (start + i) * size + offsets
                acc += tl.load(part_ptrs, mask=there, other=0.0, cache_modifier=".cg")
        tl.store(c_ptr + offsets, acc, mask=mask)
        tl.store(arrived_ptr + pid, 0)  # for the next call


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


def setup(x, w_b):
    tiles = plan(x.shape[0], w_b.shape[1], x.shape[1])[1]
    return {"arrived": torch.zeros(tiles, dtype=torch.int32, device=x.device)}


def run(x, w_b, arrived):
    (M, K), N = x.shape, w_b.shape[1]
    c = torch.empty(M, N, dtype=x.dtype, device=x.device)
    config, tiles, splits, k_per_split = plan(M, N, K)
    if c.numel():
        partials, strides = torch.empty(splits, M, N, device=x.device), (*x.stride(), *w_b.stride())
        config = {**config, "UNIT": unit(x, N, K, *strides)}
        matmul_kernel[(tiles * splits,)](x, w_b, partials, arrived, c, M, N, K, k_per_split, splits, *strides, **config)
    return c
