"""Multiply two matrices on the tensor cores in TF32: a factor keeps 11 of its 24 bits, the sums keep all.

Problem: in `baseline_tensor_cores.py` a lane multiplies one number at a time. By an H200's datasheet the CUDA cores
reach 67 TFLOP/s in float32, the tensor cores 494.5 TFLOP/s in TF32.

Idea: one instruction of a tensor core multiplies whole tiles. The inputs stay float32 in memory. The tensor core reads
8 bits of exponent and 10 of fraction, and ignores the other 13: a factor is cut towards zero. Only `input_precision`
differs from the baseline. The tile of 64 x 64 stays, so each step still fetches 8 KiB for 131,072 FLOPs.

Cost: precision. A factor loses up to 2^-10 of itself, about a third of that on average. All errors have the same sign:

    about 2 * 2^-10 / 3 = 7e-4 of the result's own size, against 1e-6 in float32

Predict: which ratio follows from the datasheet? What could keep the measured one below it?
"""

import torch
import triton
import triton.language as tl

PRECISION = "tf32"
REQUIRES = {"capability": (8, 0)}
GROUP_M = tl.constexpr(16)  # tiles of rows that run side by side: they read the same columns of b from L2


def inputs(m=8192, n=8192, k=8192, device="cuda"):
    return {"x": torch.randn(m, k, device=device), "w_b": torch.randn(k, n, device=device)}


def cost(x, w_b):
    return {"tf32_flops": 2 * x.numel() * w_b.shape[1]}


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
        acc = tl.dot(a, b, acc, input_precision="tf32")
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, w_b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    grid = (GROUP_M.value, triton.cdiv(n, 64), triton.cdiv(m, 64 * GROUP_M.value))
    matmul_kernel[grid](x, w_b, c, m, n, k, *w_b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, num_warps=8)
    return c
