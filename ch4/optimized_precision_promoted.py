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
    a_ptr, b_ptr, c_ptr, m, n, k, a_down, a_across, b_down, b_across,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    across, down, pid = tl.cdiv(n, BLOCK_N), tl.cdiv(m, BLOCK_M), tl.program_id(0)
    top = pid // (GROUP_M * across) * GROUP_M  # GROUP_M tiles of rows run side by side: they share columns of b in L2
    high = min(down - top, GROUP_M)
    tile_row, tile_column = top + pid % (GROUP_M * across) % high, pid % (GROUP_M * across) // high
    row = (tile_row * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]  # 64 bits: of offsets beyond 2^31
    column = (tile_column * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_at = a_ptr + row % m * a_down + inner.to(tl.int64)[None, :] * a_across
    b_at = b_ptr + inner.to(tl.int64)[:, None] * b_down + column % n * b_across
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        total += tl.dot(a, b, out_dtype=tl.float16)
        a_at += tl.full((), BLOCK_K, tl.int64) * a_across
        b_at += tl.full((), BLOCK_K, tl.int64) * b_down
    tl.store(c_ptr + row * n + column, total, mask=(row < m) & (column < n))


def run(x, w_b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, dtype=x.dtype, device=x.device)
    if c.numel():
        grid, blocks = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),), (BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
        strides, options = (*x.stride(), *w_b.stride()), {"num_stages": STAGES, "num_warps": WARPS}
        matmul_kernel[grid](x, w_b, c, m, n, k, *strides, *blocks, **options)
    return c
