"""Multiply two matrices in 16 bits, with 3 blocks of k in flight while one is multiplied: loads and products overlap.

Problem: in `optimized_matmul_tile.py` a step waits for its blocks, and then it multiplies. One program fills an SM,
so that no other program computes meanwhile. A step of an H200's SM, by the datasheet, with 9 TB/s from L2 assumed (a
guide, no bound):

    products    4.2 MFLOP at 989 / 132 = 7.5 TFLOP/s      0.56 us
    blocks      48 KiB at 9 / 132 = 0.068 TB/s            0.72 us, after a latency of some 0.3 us

Idea: stages. Copies of later steps run while a step is multiplied. cp.async copies from global to shared memory and
does not pass through registers. Triton does this by itself, with 3 stages unless told otherwise: it is the versions
before that turn it off.
Cost: shared memory. A stage is 48 KiB, 4 stages are 192 KiB of the 227 KiB that a block may have at capability 9.0. An
SM with less takes as many stages as fit (`setup`): 3 at capability 8.0, 2 at 8.6.
Predict: how many times as fast as `optimized_matmul_tile.py` is it?
"""

import torch
import triton
import triton.language as tl
from matrices import operand
from shared_memory import stages_that_fit

VERSUS = "tile"
REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
WARPS, STAGES = 8, 4


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device)}


@triton.jit
def swizzle(pid, num_pid_m, num_pid_n):
    return pid // num_pid_n, pid % num_pid_n  # row by row: none yet


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn):
    pid_m, pid_n = swizzle(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N))
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    # 64 bits: a stride times an index may exceed 2^31
    stride_am, stride_ak = tl.cast(stride_am, tl.int64), tl.cast(stride_ak, tl.int64)
    stride_bk, stride_bn = tl.cast(stride_bk, tl.int64), tl.cast(stride_bn, tl.int64)
    # Rows and columns beyond the last one wrap around: their sums are not stored
    a_ptrs = a_ptr + offs_m % M * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n % N * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def setup(a, b):
    return {"stages": stages_that_fit(a, STAGES, (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value)}


def run(a, b, stages):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value),)
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), num_warps=WARPS, num_stages=stages)
    return c
