"""Multiply two matrices on the tensor cores in TF32: what is multiplied keeps 11 of its 24 bits, sums keep all.

The inputs stay float32 in memory. A tensor core takes them for TF32, 8 bits of exponent and 10 of fraction, and does
not look at the other 13: each factor is cut towards zero, by up to 2^-10 of itself, by about a third of that on
average. Products are exact and added up in float32. Errors of one sign do not average out, nor grow with the sum:

    about 2 * 2^-10 / 3 = 7e-4 of the result's own size, against 1e-6 in float32

One instruction now multiplies tiles, and a program needs larger ones to keep the tensor cores supplied: 128 x 256 of
the result, 32 deep. On capability 9.0 it reads them from shared memory and wants TF32 side by side along k, so `setup`
turns w_b once, as one would weights. (What the tile alone is worth is not told apart here: the column "library" is
the time of the best float32 product at hand.)

Predict before you measure: by how much is it faster, if your datasheet holds, and what could keep the tensor cores
from it?
"""

import torch
import triton
import triton.language as tl

PRECISION = "tf32"
REQUIRES = {"capability": (8, 0)}
GROUP = tl.constexpr(16)  # tiles of rows that run side by side: they read the same columns of b from L2


def inputs(m=8192, n=8192, k=8192, device="cuda"):
    return {"x": torch.randn(m, k, device=device), "w_b": torch.randn(k, n, device=device)}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    return {"tf32_flops": 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, b_down, b_across, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = (tl.program_id(2) * GROUP + tl.program_id(0)) * M + tl.arange(0, M)[:, None]
    column = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        down, across = start + inner[:, None], start + inner[None, :]
        a = tl.load(a_ptr + row % m * k + across, mask=across < k, other=0.0)
        b = tl.load(b_ptr + down * b_down + column % n * b_across, mask=down < k, other=0.0)
        total = tl.dot(a, b, total, input_precision="tf32")
    tl.store(c_ptr + row * n + column, total, mask=(row < m) & (column < n))


def setup(x, w_b):
    return {"b": w_b.T.contiguous().T}


def run(x, w_b, b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    grid = (GROUP.value, triton.cdiv(n, 256), triton.cdiv(m, 128 * GROUP.value))
    matmul_kernel[grid](x, b, c, m, n, k, *b.stride(), M=128, N=256, K=32, num_warps=8)
    return c
