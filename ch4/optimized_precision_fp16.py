"""Multiply matrices of float16 and add up in float16: half the registers, and at k = 4096 the precision of bfloat16.

The tensor cores add 16 products at a time to the sum so far, which is then rounded to 11 bits: k / 16 roundings, each
of a sum that has grown. Of products like random ones, a sum of j terms is as large as sqrt(j), and each rounding off by
0.2 eps of that (RMS; eps = 2^-10). Independent errors add up as squares do:

    sqrt(sum of (0.2 eps)^2 * j, over j = 16, 32, .. k) / sqrt(k) = 0.2 eps * sqrt(k / 32)

    k = 256    0.6 eps = 6e-4 of the result's own size
    k = 4096   2.3 eps = 2.2e-3     what one rounding to bfloat16 leaves is 0.2 * 2^-7 = 1.6e-3
    k = 16384  4.5 eps = 4.4e-3

So PRECISION here is bfloat16's: that is what such an answer is worth, and what it is judged as. And a sum that passes
65,504 on its way is infinite from there on, though the end may not be; x and w_b of size 32 are enough at k = 4096:

    32 * 32 * sqrt(4096) = 65,536

Predict before you measure: the registers are half as many (64 for sums); is the multiplication faster, on a GPU whose
datasheet has one rate for both? (PyTorch: torch.backends.cuda.matmul.allow_fp16_accumulation.)
"""

import torch
import triton
import triton.language as tl

PRECISION = "bf16"
REQUIRES = {"capability": (8, 0)}
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
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float16)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_at, mask=inner[None, :] < k - start, other=0.0)
        b = tl.load(b_at, mask=inner[:, None] < k - start, other=0.0)
        total = tl.dot(a, b, total, out_dtype=tl.float16)
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
