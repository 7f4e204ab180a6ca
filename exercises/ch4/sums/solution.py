"""A product of float16 matrices with sums in float32: the elements stay in 16 bits, the sums do not.

A product of two float16 numbers has up to 22 bits, and a tensor core keeps them. A sum in float16 drops all but 11 bits
after each step. Its error grows with k, and above 65,504 it is infinite. `tl.dot` adds in float32 unless it is told
otherwise. So the type of `acc` and `out_dtype` are all that changes. Conversion after the loop, or after each block,
comes too late: what was rounded away does not come back. The loads stay in float16, and so do the bytes.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"m": 257, "n": 50, "k": 200}, "check/one": {"m": 1, "n": 1, "k": 1},
    "check/long": {"m": 3, "n": 257, "k": 3001}, "count": {"m": 128, "n": 128, "k": 64},
    "default": {"m": 4096, "n": 4096, "k": 4096},
}  # fmt: skip


def inputs(m, n, k, device="cuda"):
    x = torch.randn(m, k, dtype=torch.float16, device=device)
    return {"x": x, "w": torch.randn(k, n, dtype=torch.float16, device=device)}


def reference(x, w):
    return x @ w


def cost(x, w):
    m, n = x.shape[0], w.shape[1]
    return {"fp16_flops": 2 * x.numel() * n, "dram_bytes": x.nbytes + w.nbytes + 4 * m * n}


@triton.jit
def matmul_kernel(x_ptr, w_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    offs_m = (tl.program_id(0) // tl.cdiv(N, BN) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    offs_n = (tl.program_id(0) % tl.cdiv(N, BN) * BN + tl.arange(0, BN)).to(tl.int64)[None, :]
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        at_k = (k + offs_k).to(tl.int64)
        x = tl.load(x_ptr + offs_m * K + at_k[None, :], mask=(offs_m < M) & (at_k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + at_k[:, None] * N + offs_n, mask=(at_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(c_ptr + offs_m * N + offs_n, acc, mask=(offs_m < M) & (offs_n < N))


def run(x, w):
    (M, K), N = x.shape, w.shape[1]
    c = torch.empty(M, N, dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
    matmul_kernel[grid](x, w, c, M, N, K, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
    return c
