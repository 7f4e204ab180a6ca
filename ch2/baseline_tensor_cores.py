"""Multiply two matrices of float32 on the CUDA cores: one multiply-add a lane and cycle, all 24 bits of it.

A program computes a tile of 64 x 64 of the result. Every step loads 64 x 16 of x and 16 x 64 of w_b and multiplies
them in float32, as IEEE 754 says ("ieee"). The arithmetic is 2 * 8192^3 = 1.1 TFLOP; an SM of capability 9.0 has 128
lanes for it:

    132 SMs * 128 lanes * 2 FLOP = 33,792 FLOP a cycle at most

Predict before you measure: tensor cores multiply whole tiles in one instruction, but cut what they multiply. Your
GPU's datasheet says how fast; what does `optimized_tensor_cores_tf32.py` lose in precision?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 127, "n": 65, "k": 129},
    "check/row": {"m": 1, "n": 131, "k": 33},
    "check/tail": {"m": 65, "n": 131, "k": 33},
    "default": {"m": 8192, "n": 8192, "k": 8192},
    "medium": {"m": 4096, "n": 4096, "k": 4096},
}
GROUP = tl.constexpr(16)  # tiles of rows that run side by side: they read the same columns of b from L2


def inputs(m=8192, n=8192, k=8192, device="cuda"):
    return {"x": torch.randn(m, k, device=device), "w_b": torch.randn(k, n, device=device)}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    return {"fp32_flops": 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, b_down, b_across, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = (tl.program_id(2) * GROUP + tl.program_id(0)) * M + tl.arange(0, M)[:, None]
    column = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        down, across = start + inner[:, None], start + inner[None, :]
        a = tl.load(a_ptr + row % m * k + across, mask=across < k, other=0.0)
        b = tl.load(b_ptr + down * b_down + column % n * b_across, mask=down < k, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + row * n + column, total, mask=(row < m) & (column < n))


def run(x, w_b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    grid = (GROUP.value, triton.cdiv(n, 64), triton.cdiv(m, 64 * GROUP.value))
    matmul_kernel[grid](x, w_b, c, m, n, k, *w_b.stride(), M=64, N=64, K=16, num_warps=8)
    return c
