"""Multiply 16 rows by a long matrix, a program for each tile of the result: 64 programs, and 68 SMs are idle.

Problem: c = x @ w_b, [16, 16,384] @ [16,384, 4096], as in a language model that answers 16 requests. All of w_b is
read for 16 rows, so memory is the limit:

    w_b         16,384 * 4096 * 2 bytes            = 128 MiB, once
    products    2 * 16 * 16,384 * 4096 = 2.1 GFLOP = 16 for each byte, where the ridge point is 206 (H200, datasheet)

Cost: a program walks all of k for its tile of 16 x 64, in blocks of 10 KiB, of which at most three are in flight. If a
block takes 1 us to arrive (assumed, for a busy memory), the programs receive at most

    64 programs * 3 * 10 KiB / 1 us = 2.0 TB/s, of the 4.8 TB/s in an H200's datasheet

Predict: `optimized_split_k_split.py` has four times as many programs. How many times as fast can it be at most?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 3, "n": 67, "k": 261}, "check/one": {"m": 1, "n": 1, "k": 1},
    "check/square": {"m": 67, "n": 127, "k": 260}, "check/transposed": {"m": 5, "n": 65, "k": 197, "transposed": True},
    "check/shares": {"m": 2, "n": 136, "k": 5691},  # 89 steps for 88 programs a tile: two each, and one for the last
    "check/tuned/row": {"m": 1, "n": 67, "k": 777},
    "check/tuned/row/transposed": {"m": 1, "n": 67, "k": 1999, "transposed": True},
    "check/tuned/by8": {"m": 5, "n": 72, "k": 392},
    "check/tuned/by8/transposed": {"m": 5, "n": 72, "k": 392, "transposed": True},
    "check/tuned/rows": {"m": 33, "n": 136, "k": 520},  # two tiles, of 9 programs each
    "check/tuned/nothing": {"m": 3, "n": 5, "k": 0},
    "count": {"m": 16, "n": 4096, "k": 512},
    "default": {"m": 16, "n": 4096, "k": 16_384}, "medium/1x4096x16384": {"m": 1},
    "large/4096x4096x4096": {"m": 4096, "n": 4096, "k": 4096},  # 2048 tiles: nothing to split
}  # fmt: skip
SKINNY = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}  # up to 16 rows
SQUARE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}


def inputs(m=16, n=4096, k=16_384, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(m, k, dtype=dtype, device=device), "w_b": w_b.T if transposed else w_b}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    kind = "fp16_flops" if x.dtype == torch.float16 else "bf16_flops"
    result = x.shape[0] * w_b.shape[1] * x.element_size()
    return {"dram_bytes": x.nbytes + w_b.nbytes + result, kind: 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0).to(tl.int64)  # 64 bits: offsets may exceed 2^31
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, w_b):
    (M, K), N = x.shape, w_b.shape[1]
    c = torch.empty(M, N, dtype=x.dtype, device=x.device)
    config = SKINNY if SKINNY["BLOCK_M"] >= M else SQUARE
    grid = (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)
    matmul_kernel[grid](x, w_b, c, M, N, K, *x.stride(), *w_b.stride(), **config)
    return c
