"""Multiply matrices of float16 and add up in float32: a sum of 4096 products is rounded to float16 once, at the end.

Problem: how exact must a sum be? A product of two float16 numbers, 11 bits each, is exact in 22 bits. The tensor cores
add 16 products at a time to a sum of 24 bits. The error of these additions is far below that of the last step, which
rounds the sum to float16:

    eps = 2^-10; one rounding is off by up to eps / 2 of the result, by about 0.2 eps on average (RMS), for any k

Cost: registers. The sums of a tile of 128 x 256 are 32,768 registers, half of an SM's: 128 for each of 256 threads.
Predict: `optimized_precision_fp16.py` rounds its sum to float16 after every 16 products. The sum of j random products
has a size of sqrt(j), each rounding is off by 0.2 eps of that, and independent errors add up as squares. How many times
larger is the error at k = 4096?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 67, "n": 65, "k": 129}, "check/one": {"m": 1, "n": 1, "k": 1},
    "check/row": {"m": 1, "n": 131, "k": 33}, "check/long": {"m": 17, "n": 33, "k": 2051},
    "check/tiles": {"m": 389, "n": 269, "k": 7},
    "check/transposed": {"m": 65, "n": 33, "k": 67, "transposed": True}, "check/nothing": {"m": 3, "n": 5, "k": 0},
    "count": {"m": 512, "n": 512, "k": 256},
    "default": {"m": 4096, "n": 4096, "k": 4096}, "medium/k256": {"k": 256}, "medium/k16384": {"k": 16_384},
}  # fmt: skip
BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS = 128, 256, 64, 3, 8


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
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n, pid = tl.cdiv(N, BLOCK_N), tl.program_id(0)
    offs_m = pid // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = pid % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
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


def run(x, w_b):
    (M, K), N = x.shape, w_b.shape[1]
    c = torch.empty(M, N, dtype=x.dtype, device=x.device)
    grid, blocks = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),), (BLOCK_M, BLOCK_N, BLOCK_K)
    strides = *x.stride(), *w_b.stride()
    matmul_kernel[grid](x, w_b, c, M, N, K, *strides, *blocks, num_stages=STAGES, num_warps=WARPS)
    return c
