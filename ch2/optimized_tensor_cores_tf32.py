"""Multiply two matrices on the tensor cores in TF32: what is multiplied keeps 11 of its 24 bits, sums keep all.

The inputs stay float32 in memory. On their way into a tensor core they are rounded to TF32, 8 bits of exponent and 10
of fraction; products are exact and added up in float32. An error of 2^-11 in each factor, of random sign, does not grow
with the length of the sum relative to the result:

    about 2 * 2^-11 / sqrt(3) = 6e-4 of the result's own size, against 1e-6 in float32

One instruction now multiplies tiles, which it reads from shared memory: 128 x 128 of the result, 32 deep, a program.

Predict before you measure: by how much is it faster, if your datasheet holds, and what could keep the tensor cores
from it?
"""

import torch
import triton
import triton.language as tl

PRECISION = "tf32"
SIZES = {
    "check": {"m": 127, "n": 65, "k": 129},
    "check/one": {"m": 1, "n": 1, "k": 1},
    "check/tail": {"m": 65, "n": 131, "k": 33},
    "default": {"m": 8192, "n": 8192, "k": 8192},
    "medium": {"m": 4096, "n": 4096, "k": 4096},
}


def inputs(m=8192, n=8192, k=8192, device="cuda"):
    return {"x": torch.randn(m, k, device=device), "w_b": torch.randn(k, n, device=device)}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    return {"tf32_flops": 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    column = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        down, across = start + inner[:, None], start + inner[None, :]
        a = tl.load(a_ptr + row * k + across, mask=(row < m) & (across < k), other=0.0)
        b = tl.load(b_ptr + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="tf32")
    tl.store(c_ptr + row * n + column, total, mask=(row < m) & (column < n))


def run(x, w_b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, device=x.device)
    matmul_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 128))](x, w_b, c, m, n, k, M=128, N=128, K=32, num_warps=8)
    return c
