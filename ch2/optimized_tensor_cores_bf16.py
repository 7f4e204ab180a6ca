"""Multiply two matrices on the tensor cores in bfloat16: 8 bits of each factor, half the bytes, twice TF32's rate.

Problem: in `optimized_tensor_cores_tile.py` each factor takes 4 bytes, and the tensor cores work at half the rate that
they have for 16-bit factors (datasheet of an H200: 494.5 and 989.5 TFLOP/s).

Idea: bfloat16 is the upper half of a float32: the same exponent, 7 bits of fraction. The weights are converted once, in
`setup`. x is converted in every call: 256 MiB are read and 128 MiB written before the product begins.

Cost: precision. A factor is rounded, up or down, by up to 2^-8 of itself. Sums and the result stay float32:

    sqrt(2) * 2^-8 / sqrt(3) = 3e-3 of the result's own size at most

Predict: is it twice as fast as `optimized_tensor_cores_tile.py`? Which part of its time does a higher rate of the
tensor cores not shorten?
"""

import torch
import triton
import triton.language as tl

PRECISION = "bf16"
VERSUS = "tile"
DEVICE = "cuda"  # Triton's interpreter multiplies no bfloat16
REQUIRES = {"capability": (8, 0)}
GROUP_M = tl.constexpr(16)  # tiles of rows that run side by side: they read the same columns of b from L2


def inputs(m=8192, n=8192, k=8192, device="cuda"):
    return {"x": torch.randn(m, k, device=device), "w_b": torch.randn(k, n, device=device)}


def cost(x, w_b):
    return {"bf16_flops": 2 * x.numel() * w_b.shape[1]}


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
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def setup(x, w_b):
    return {"b": w_b.bfloat16()}


def run(x, w_b, b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    grid = (GROUP_M.value, triton.cdiv(n, 256), triton.cdiv(m, 128 * GROUP_M.value))
    matmul_kernel[grid](x.bfloat16(), b, c, m, n, k, *b.stride(), BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, num_warps=8)
    return c
