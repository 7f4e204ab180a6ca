"""Multiply two matrices in 16 bits, a tile of 128 x 256 a program: each element is fetched 16 or 32 times at 4096^3.

Problem: in `baseline_matmul.py` a loaded element serves 32 rows or columns only, so L2 delivers 8.6 GB.
Idea: a larger tile. An element of a serves 256 columns, an element of b serves 128 rows.

    a step of k      (128 + 256) * 64 * 2 bytes = 48 KiB for 2 * 128 * 256 * 64 FLOP: 85 FLOP for each byte
    all of 4096^3    4096^3 * (1/128 + 1/256) * 2 bytes = 1.6 GB from the caches

From capability 9.0 on, 128 rows also allow the widest tensor-core instructions: 64 rows of a times 256 columns of b, by
four warps, with operands in shared memory.
Cost: 128 x 256 sums of 256 threads are 128 registers a thread, half of the registers of an SM. One program fills the
SM, where the baseline has several. Loads and products of that one program run in sequence.
Predict: it fetches 5.3 times fewer bytes than `baseline_matmul.py`. Is it 5.3 times as fast, or more, or less?
"""

import torch
import triton
import triton.language as tl
from matrices import operand

REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
WARPS, STAGES = 8, 1


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


def run(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value),)
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), num_warps=WARPS, num_stages=STAGES)
    return c
