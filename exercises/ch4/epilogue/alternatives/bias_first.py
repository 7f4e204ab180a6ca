"""A layer in two kernels: a product, then bias, GELU and residual. The matrix between goes through memory.

Yours: the kernels and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(m, n, k, device="cuda"):
    shapes = {"x": (m, k), "w": (k, n), "bias": (n,), "residual": (m, n)}
    return {name: torch.randn(*shape, device=device).half() for name, shape in shapes.items()}


@triton.jit
def product_kernel(
    x_ptr, w_ptr, bias_ptr, residual_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    offs_m = (tl.program_id(0) // tl.cdiv(N, BN) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    offs_n = (tl.program_id(0) % tl.cdiv(N, BN) * BN + tl.arange(0, BN)).to(tl.int64)[None, :]
    offs_k = tl.arange(0, BK)
    bias = tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), tl.float32) + bias
    for k in range(0, K, BK):
        at_k = (k + offs_k).to(tl.int64)
        x = tl.load(x_ptr + offs_m * K + at_k[None, :], mask=(offs_m < M) & (at_k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + at_k[:, None] * N + offs_n, mask=(at_k[:, None] < K) & (offs_n < N), other=0.0)
        acc = tl.dot(x, w, acc)
    place, mask = offs_m * N + offs_n, (offs_m < M) & (offs_n < N)
    y = acc * tl.sigmoid(1.5957691216057308 * (acc + 0.044715 * acc * acc * acc))  # 1 + tanh(t) = 2 sigmoid(2 t)
    tl.store(out_ptr + place, y + tl.load(residual_ptr + place, mask=mask), mask=mask)


def run(x, w, bias, residual):
    (M, K), N = x.shape, w.shape[1]
    out = torch.empty_like(residual)
    grid = (triton.cdiv(M, 128) * triton.cdiv(N, 128),)
    product_kernel[grid](x, w, bias, residual, out, M, N, K, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
    return out
