"""Multiply two matrices of float32 on the CUDA cores: one multiply-add a lane and cycle, all 24 bits of it.

Problem: a program computes a tile of 64 x 64 of the result. Every step loads 64 x 16 of x and 16 x 64 of w_b and
multiplies them in float32, as IEEE 754 says ("ieee"). An SM of capability 9.0 has 128 lanes for this:

    132 SMs * 128 lanes * 2 FLOP = 33,792 FLOP a cycle at most

Cost: 2 * 8192^3 = 1.1 TFLOP.

Predict: how long does the product take at least, at 1.98 GHz (the highest clock of an H200)?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 127, "n": 65, "k": 129},
    "check/row": {"m": 1, "n": 131, "k": 33},
    "check/tail": {"m": 65, "n": 131, "k": 33},
    "check/groups": {"m": 2051, "n": 33, "k": 17},  # of rows that run side by side: the second is not whole
    "count": {"m": 2048, "n": 256, "k": 64},  # one group of 16 tiles of 128 rows: no program is idle
    "default": {"m": 8192, "n": 8192, "k": 8192},
    "medium": {"m": 4096, "n": 4096, "k": 4096},
}
GROUP_M = tl.constexpr(16)  # tiles of rows that run side by side: they read the same columns of b from L2


def inputs(m=8192, n=8192, k=8192, device="cuda"):
    return {"x": torch.randn(m, k, device=device), "w_b": torch.randn(k, n, device=device)}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    return {"fp32_flops": 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tl.program_id(2) * GROUP_M + tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_bk, offs_ak = k + offs_k[:, None], k + offs_k[None, :]
        a = tl.load(a_ptr + offs_m % M * K + offs_ak, mask=offs_ak < K, other=0.0)
        b = tl.load(b_ptr + offs_bk * stride_bk + offs_n % N * stride_bn, mask=offs_bk < K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, w_b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    grid = (GROUP_M.value, triton.cdiv(n, 64), triton.cdiv(m, 64 * GROUP_M.value))
    matmul_kernel[grid](x, w_b, c, m, n, k, *w_b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=8)
    return c
