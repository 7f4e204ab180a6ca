"""Multiply matrices of float16 and add up in float32: a sum of 4096 products is rounded to float16 once, at the end.

A product of two float16 numbers, 11 bits each, is exact in 22. The tensor cores add 16 of them at a time to a sum of 24
bits; what these adds lose is far below what the last step loses, which makes float16 of the sum:

    eps = 2^-10; rounding is off by up to eps / 2 of the result, by about 0.2 eps = 2e-4 of it on average (RMS)

and that for any k. The sums of a tile of 128 x 256 are 32,768 registers, half of what an SM has: 128 for each of 256
threads.

Predict before you measure: in float16 the sums of `optimized_precision_fp16.py` are half as many registers, and are
rounded every 16 products. By what factor does the error grow at k = 4096, and is anything won? In the datasheet of your
GPU, is there a rate for sums in float16?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"m": 127, "n": 65, "k": 129}, "check/one": {"m": 1, "n": 1, "k": 1},
    "check/row": {"m": 1, "n": 131, "k": 33}, "check/long": {"m": 17, "n": 33, "k": 4099},
    "check/transposed": {"m": 65, "n": 33, "k": 67, "transposed": True}, "check/nothing": {"m": 3, "n": 5, "k": 0},
    "default": {"m": 4096, "n": 4096, "k": 4096},
    "medium/k256": {"k": 256}, "medium/k1024": {"k": 1024}, "medium/k4096": {}, "medium/k16384": {"k": 16_384},
    "large/8192": {"m": 8192, "n": 8192, "k": 8192},
}  # fmt: skip
BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES, WARPS = 128, 256, 64, 8, 3, 8


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
        total = tl.dot(a, b, total)
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
