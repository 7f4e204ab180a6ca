"""Multiply few rows by a long matrix of any alignment: how often k is split, and each block, by what x and w_b are.

Problem: `optimized_split_k_split.py` has one block for all matrices, and adds up in two launches after the first one.
Idea: of the two launches one is left, which adds up and rounds (`split_k_reduce.py`). From capability 9.0 on its
programs come to the SMs as soon as the first kernel's have begun, and wait there (programmatic dependent launch).
`plan` chooses by m, n, k and by how w_b lies in memory:

    17 to 64 rows          half of the programs: they write half as many partial sums
    columns contiguous     blocks of k = 128: longer pieces of memory
    rows off 16 bytes      loads are of 2 bytes and none is ahead of the products: 2 or 4 times as many programs (`ODD`)
    ... and x is one row   CUDA cores multiply: tensor cores would wait for these loads (BLOCK_M = 1)
    multiples of 8, not 16 the compiler is told, so that it copies 16 bytes at a time (`UNIT`)

Cost: four partial sums of each element go to memory in float32, 1 MiB, written and read, as in the lesson. They are
added up always in the same order.
Predict: which of these cases can a caller remove by padding, and which one not?
"""

from functools import cache

import torch
import triton
import triton.language as tl
from alignment import assume_multiple, odd, unit
from launches import launch
from split_k_reduce import add_up

VERSUS = "split"
REQUIRES = {"capability": (8, 0)}
SKINNY = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}  # up to 16 rows
SQUARE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}
PROGRAMS = 264  # where k is split: 2 for each of 132 SMs; `plan` has the exceptions


def inputs(m=16, n=4096, k=16_384, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(m, k, dtype=dtype, device=device), "w_b": w_b.T if transposed else w_b}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, partials_ptr, M, N, K, k_per_split, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, UNIT: tl.constexpr,
    ODD: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()  # the next kernel's programs may come to the SMs and wait
    N, K = assume_multiple(N, UNIT), assume_multiple(K, UNIT)  # of what lengths and strides are multiples
    stride_am, stride_ak = assume_multiple(stride_am, UNIT), assume_multiple(stride_ak, UNIT)
    stride_bk, stride_bn = assume_multiple(stride_bk, UNIT), assume_multiple(stride_bn, UNIT)
    num_pid_n, num_tiles = tl.cdiv(N, BLOCK_N), tl.cdiv(N, BLOCK_N) * tl.cdiv(M, BLOCK_M)
    pid, pid_k = tl.program_id(0) % num_tiles, tl.program_id(0) // num_tiles
    # 64 bits: offsets may exceed 2^31
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    offs_k, rows, columns = tl.arange(0, BLOCK_K), M, N
    k_start = pid_k * k_per_split
    first_k = k_start
    if ODD:  # a thread copies single elements: offsets from the block's first one take fewer registers than addresses
        first_m, first_n = pid // num_pid_n * BLOCK_M, pid % num_pid_n * BLOCK_N
        a_ptr += first_m.to(tl.int64) * stride_am + tl.cast(k_start, tl.int64) * stride_ak
        b_ptr += first_n.to(tl.int64) * stride_bn + tl.cast(k_start, tl.int64) * stride_bk
        partials_ptr += first_m.to(tl.int64) * N + first_n
        offs_m, offs_n, first_k = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :], 0
        rows, columns = M - first_m, N - first_n
    k_of_a = offs_k[None, :] if BLOCK_M > 1 else offs_k[:, None]  # one row: as a column, to be multiplied by all of b's
    a_ptrs = a_ptr + offs_m.to(tl.int64) * stride_am + (first_k + k_of_a).to(tl.int64) * stride_ak
    b_ptrs = b_ptr + (first_k + offs_k).to(tl.int64)[:, None] * stride_bk + offs_n.to(tl.int64) * stride_bn
    acc = tl.zeros((BLOCK_M if BLOCK_M > 1 else BLOCK_K, BLOCK_N), tl.float32)
    for k in range(k_start, min(k_start + k_per_split, K), BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m < rows) & (k_of_a < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n < columns), other=0.0)
        acc = tl.dot(a, b, acc) if BLOCK_M > 1 else acc + a.to(tl.float32) * b.to(tl.float32)
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    if BLOCK_M == 1:
        acc = tl.sum(acc, 0, keep_dims=True)
    partials_ptr += pid_k.to(tl.int64) * M * N
    tl.store(partials_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < rows) & (offs_n < columns))


@cache
def plan(M, N, K, odd_rows=False, odd_columns=False, by_columns=False):
    """The configuration, how many tiles there are and how many programs share each, and how much of k one takes.

    odd_rows: w_b's rows, n long, are not at multiples of 16 bytes; odd_columns: its columns, k long, where those are
    contiguous. Loads are of 2 bytes then and none is ahead of the products: more programs wait at the same time.
    by_columns: w_b's columns are contiguous. With up to 16 rows of x, a step then takes 128 numbers of each column, not
    64: longer pieces of memory.
    """
    config, programs = SKINNY if SKINNY["BLOCK_M"] >= M else SQUARE, PROGRAMS
    if M == 1 and (odd_rows or odd_columns):
        block_k, programs = (8, 2 * PROGRAMS) if odd_rows else (min(1024, triton.next_power_of_2(K)), 4 * PROGRAMS)
        config = {**SKINNY, "BLOCK_M": 1, "BLOCK_N": 4096 // block_k, "BLOCK_K": block_k}
    elif odd_rows and config is SKINNY:
        config, programs = {**SKINNY, "BLOCK_K": 128}, 4 * PROGRAMS
    elif odd_rows or odd_columns:
        programs = 2 * PROGRAMS
    elif by_columns and config is SKINNY:
        config = {**SKINNY, "BLOCK_K": 128}
    tiles = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
    # 17 to 64 rows: half of the programs write half as many sums. But at least two share a tile
    if config is SQUARE and SQUARE["BLOCK_M"] >= M and programs == PROGRAMS and 4 * tiles <= PROGRAMS:
        programs = PROGRAMS // 2
    steps = triton.cdiv(K, config["BLOCK_K"])
    each = max(triton.cdiv(steps, max(programs // max(tiles, 1), 1)), 1)
    return config, tiles, max(triton.cdiv(steps, each), 1), each * config["BLOCK_K"]


def setup(x, w_b):
    return {"overlap": x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)}


def run(x, w_b, overlap):
    (M, K), N = x.shape, w_b.shape[1]
    c = torch.empty(M, N, dtype=x.dtype, device=x.device)
    config, tiles, splits, k_per_split = plan(
        M, N, K, odd(w_b, w_b.stride(0)), odd(w_b, w_b.stride(1)), w_b.stride(0) < w_b.stride(1)
    )
    if c.numel():
        partials = torch.empty(splits, M, N, device=x.device) if splits > 1 else c
        strides = *x.stride(), *w_b.stride()
        config = {**config, "UNIT": unit(x, N, K, *strides), "ODD": odd(x, *strides), "OVERLAP": overlap}
        launch(matmul_kernel, (tiles * splits,), x, w_b, partials, M, N, K, k_per_split, *strides, **config)
        if splits > 1:
            add_up(partials, c, overlap)
    return c
