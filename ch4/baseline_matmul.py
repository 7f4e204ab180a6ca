"""Multiply two matrices in 16 bits, a tile of 32 x 32 a program: each element is fetched 128 times at 4096^3.

Problem: c = a @ b, summed in float32. A program computes one tile of c. It walks along k: it loads 32 x 64 of a and
64 x 32 of b, multiplies them on the tensor cores and adds the products to its tile. An element of a serves 32 columns
of c, an element of b serves 32 rows.

    a step of k      (32 + 32) * 64 * 2 bytes = 8 KiB for 2 * 32 * 32 * 64 FLOP: 16 FLOP for each byte
    all of 4096^3    4096^3 * (1/32 + 1/32) * 2 bytes = 8.6 GB from the caches, where a and b are 67 MB

Cost: L2 delivers these bytes. A step is multiplied only after its loads have arrived: there is one stage, so that the
parts of a step can be told apart. Triton's default is 3, and `optimized_matmul_pipelined.py` returns to it.
Predict: an H200 computes 989 TFLOP/s in float16 (datasheet). If its L2 delivers 9 TB/s, how many TFLOP/s do 16 FLOP for
each byte allow?
"""

import torch
import triton
import triton.language as tl
from matrices import operand, product_cost

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 67, "n": 129, "k": 65}, "check/one": {"m": 1, "n": 1, "k": 1},
    "check/row": {"m": 1, "n": 257, "k": 131}, "check/tiles": {"m": 389, "n": 269, "k": 7},
    "check/a transposed": {"m": 67, "n": 129, "k": 131, "transposed": "a"},
    "check/by16": {"m": 136, "n": 272, "k": 80},
    "check/tuned/both transposed": {"m": 136, "n": 264, "k": 72, "transposed": "ab"},
    "check/tuned/b transposed": {"m": 136, "n": 264, "k": 72, "transposed": "b"},
    "check/tuned/no k": {"m": 3, "n": 5, "k": 0}, "check/tuned/no row": {"m": 0, "n": 5, "k": 3},
    "check/tuned/192": {"m": 190, "n": 4225, "k": 9}, "check/tuned/192/by8": {"m": 191, "n": 4232, "k": 8},  # its tiles
    "check/tuned/steps": {"m": 70, "n": 129, "k": 1100},  # more steps than stages
    "count": {"m": 512, "n": 512, "k": 256},
    "default": {}, "large/8192/fp16": {"m": 8192, "n": 8192, "k": 8192},
    "odd/4093/bf16": {"m": 4093, "n": 4093, "k": 4093, "dtype": "bfloat16"},  # a prime: 7 of 8 rows begin off 16 bytes
}  # fmt: skip
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(32), tl.constexpr(32), tl.constexpr(64)
WARPS, STAGES = 4, 1


def inputs(m=4096, n=4096, k=4096, dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device)}


def reference(a, b):
    return a @ b


def library(a, b):
    return a @ b


def cost(a, b):
    return product_cost(a, b)


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


def run(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value),)
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), num_warps=WARPS, num_stages=STAGES)
    return c
