"""Multiply two matrices in TF32 with a tile of 128 x 256: each number that is fetched is used 2.7 times as often.

Problem: a program of `optimized_tensor_cores_tf32.py` fetches 64 + 64 numbers for each of k, for 64 * 64 multiply-adds.
The tensor cores need the next ones before they arrive.

Idea: a larger tile, which needs fewer bytes for the same FLOPs, and is 32 deep instead of 16:

    64 x 64       128 numbers for  4,096 multiply-adds: 32 for each number
    128 x 256     384 numbers for 32,768 multiply-adds: 85 for each number

On capability 9.0 the tensor cores can read such tiles from shared memory by themselves, if TF32 values lie side by side
along k. So `setup` transposes w_b once, as is done with weights.

Cost: more registers a thread for the sums, and more shared memory: fewer programs run side by side on an SM. A small
matrix has too few tiles for all SMs.

Predict: with the datasheet's 67 and 494.5 TFLOP/s, which ratio to `baseline_tensor_cores.py` follows? Will the measured
one be larger or smaller?
"""

import torch
import triton
import triton.language as tl

PRECISION = "tf32"
VERSUS = "tf32"
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


def setup(x, w_b):
    return {"b": w_b.T.contiguous().T}


def run(x, w_b, b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    grid = (GROUP_M.value, triton.cdiv(n, 256), triton.cdiv(m, 128 * GROUP_M.value))
    matmul_kernel[grid](x, b, c, m, n, k, *b.stride(), BLOCK_M=128, BLOCK_N=256, BLOCK_K=32, num_warps=8)
    return c
