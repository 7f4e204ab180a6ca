"""Multiply 40 pairs of 128 x 128 matrices in one launch: the grid has a tile of every product, 160 programs at once.

Problem: `baseline_batched_matmul.py` waits for a launch and for memory 40 times.
Idea: one launch. The grid's second axis counts the products, and a program takes 64 x 64 of one of them. By Triton's 3
stages, the default, both of its blocks of k = 64 are in flight before it multiplies the first one. That is so in the
baseline, too, but here all programs wait for memory once, at the same time.

    40 products * 4 tiles = 160 programs    one for each of 132 SMs, two for some
    40 * 3 * 32 KiB = 3.75 MiB              0.8 us of an H200's memory, by its datasheet
    40 * 2 * 128^3 = 168 MFLOP              0.2 us of its tensor cores

Cost: neither is the limit. A launch, a load from memory and a store come one after the other, however small they are.
In float32, without tensor cores, the products take longer: 168 MFLOP at 67 TFLOP/s are 2.5 us. One tile for all shapes
is too small for large products, and rows that do not begin at multiples of 16 bytes are loaded by the element:
`optimized_batched_matmul_tuned.py` chooses. A grid's second axis ends at 65,535.
Predict: from 64^3 to 128^3 the arithmetic grows by 8 and the bytes by 4. By what factor does the time grow?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}


def inputs(batch=40, m=128, n=128, k=128, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    y = torch.randn(batch, *((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(batch, m, k, dtype=dtype, device=device), "y": y.mT if transposed else y}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0).to(tl.int64)  # 64 bits: offsets may exceed 2^31
    pid_b = tl.program_id(1).to(tl.int64)  # which product
    a_ptr, b_ptr, c_ptr = a_ptr + pid_b * stride_ab, b_ptr + pid_b * stride_bb, c_ptr + pid_b * M * N
    offs_m = (pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs_n = (pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K).to(tl.int64)
        a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # of float32: no TF32
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, y):
    (batch, M, K), N = x.shape, y.shape[2]
    c = torch.empty(batch, M, N, dtype=x.dtype, device=x.device)
    block_k = 64 if x.element_size() == 2 else 16  # float32 is multiplied from registers, which hold less
    tiles = triton.cdiv(M, 64) * triton.cdiv(N, 64)
    matmul_kernel[(tiles, batch)](x, y, c, M, N, K, *x.stride(), *y.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=block_k)
    return c
