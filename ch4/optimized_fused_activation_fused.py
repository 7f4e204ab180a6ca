"""Multiply two matrices and apply an activation in one kernel: sums are activated in registers and written once.

Problem: `baseline_fused_activation.py` moves 67 MB more than the product needs at 4096^3, and 268 MB more at 8192^3.
Idea: the kernel of `optimized_matmul_pipelined.py`, in grouped order, with one more call. Between the last product and
the store each thread applies the activation to its 128 sums, in float32.

    one kernel    reads a and b, writes 32 MiB    101 MB at 4096^3, where the baseline moves 168

The result is rounded once.
Cost: the instructions of the activation: 2 for each sum of a leaky ReLU, 13 of a SiLU, 20 of a GELU, whose error
function is approximated (`upper_tail` in activations.py). They are counted in the machine code for capability 9.0. The
SM's one program does nothing else meanwhile. And the product is our own: it may be slower than the library's.
Predict: at 8192^3 the library's product takes 1.11 ms, and 268 MB take 0.056 ms (H200, datasheet). By how many percent
may our product be slower than the library's for the fusion still to win?
"""

import torch
import triton
import triton.language as tl
from activations import activate
from matrices import operand
from shared_memory import stages_that_fit
from tile_order import swizzle

REQUIRES = {"capability": (8, 0)}
BLOCK_M, BLOCK_N, BLOCK_K = tl.constexpr(128), tl.constexpr(256), tl.constexpr(64)
GROUP_M = tl.constexpr(8)  # tiles of rows that run side by side
WARPS, STAGES = 8, 4


def inputs(m=4096, n=4096, k=4096, activation="leaky_relu", dtype="float16", transposed="", device="cuda"):
    a = operand(m, k, dtype, "a" in transposed, device)
    return {"a": a, "b": operand(k, n, dtype, "b" in transposed, device), "activation": activation}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, ACTIVATION: tl.constexpr
):  # fmt: skip
    pid_m, pid_n = swizzle(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
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
    tl.store(c_ptr + offs_m.to(tl.int64) * N + offs_n, activate(acc, ACTIVATION), mask=(offs_m < M) & (offs_n < N))


def setup(a, b, activation):
    return {"stages": stages_that_fit(a, STAGES, (BLOCK_M.value + BLOCK_N.value) * BLOCK_K.value)}


def run(a, b, activation, stages):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M.value) * triton.cdiv(N, BLOCK_N.value),)
    strides = *a.stride(), *b.stride()
    matmul_kernel[grid](a, b, c, M, N, K, *strides, activation, num_warps=WARPS, num_stages=stages)
    return c
