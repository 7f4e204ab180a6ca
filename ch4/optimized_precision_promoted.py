"""Multiply matrices of float16, add up 64 products in float16 and these sums in float32: an error that does not grow.

A step of 64 begins at zero, adds 16 products at a time and rounds four times; then its sum goes to one in float32, on
the CUDA cores. The steps' errors add up as squares do, as do their sums, so that k does not matter:

    a step's sum    0.2 eps * sqrt(64 / 32 + 1/2) = 0.3 eps (eps = 2^-10)
    the result      the same, and its own rounding: sqrt(0.3^2 + 0.2^2) eps = 0.4 eps = 4e-4

against 0.2 eps in `baseline_precision.py`, and no sum of 64 is likely to pass 65,504. Whether it is worth something is
a question to a GPU whose tensor cores add faster in float16. Its price: sums of both kinds are kept, so that a tile is
128 x 128 here (64 registers of each of 256 threads, and 32; twice that, and a thread is at the 255 that it may have).
And in each step of 64:

    64 * 128 * 128 = 1 Mi multiply-adds    512 cycles of an H200's SM: 2048 a cycle
    128 * 128 sums converted and added     2 * 128 cycles of 128 lanes, while these warps multiply nothing

Predict before you measure: on a GPU with one rate for both, is this faster or slower than float32 all the way?
"""

import torch
import triton
import triton.language as tl

PRECISION = "fp16"
VERSUS = "fp16"
STRESS = {"values around 100": "sums in float16 pass 65,504 on their way", "values around 10,000": "the same"}
REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES, WARPS = 128, 128, 64, 8, 4, 8


def inputs(m=4096, n=4096, k=4096, transposed=False, device="cuda"):
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=torch.float16, device=device)
    return {"x": torch.randn(m, k, dtype=torch.float16, device=device), "w_b": w_b.T if transposed else w_b}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    return {"fp16_flops": 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    num_pid_n, num_pid_m, pid = tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M), tl.program_id(0)
    # GROUP_M tiles of rows run side by side: they share columns of b in L2
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_in_group = pid % (GROUP_M * num_pid_n)
    pid_m, pid_n = first_pid_m + pid_in_group % group_size_m, pid_in_group // group_size_m
    # 64 bits: offsets may exceed 2^31
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m % M * stride_am + offs_k.to(tl.int64)[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k.to(tl.int64)[:, None] * stride_bk + offs_n % N * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        acc += tl.dot(a, b, out_dtype=tl.float16)
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, w_b):
    (M, K), N = x.shape, w_b.shape[1]
    c = torch.empty(M, N, dtype=x.dtype, device=x.device)
    if c.numel():
        grid, blocks = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),), (BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
        strides, options = (*x.stride(), *w_b.stride()), {"num_stages": STAGES, "num_warps": WARPS}
        matmul_kernel[grid](x, w_b, c, M, N, K, *strides, *blocks, **options)
    return c
