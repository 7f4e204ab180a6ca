"""Multiply 40 pairs of 128 x 128 matrices in one launch: the grid has a tile of every product, 160 programs at once.

In float16 a program takes 64 x 64 of one product. Both of its blocks of k = 64 are on their way before it multiplies
the first, so that DRAM is waited for once, by all:

    40 products * 4 tiles = 160 programs    one for each of 132 SMs, two for some
    40 * 3 * 32 KiB = 3.75 MiB              a microsecond of an H200's memory, as by its datasheet
    40 * 2 * 128^3 = 168 MFLOP              less of its tensor cores

Neither is the limit: a launch, a load from DRAM and a store come one after the other, whatever their size. In float32,
without tensor cores, the same products are some microseconds of arithmetic.

Predict before you measure: by what factor does the time grow from 64^3 to 128^3 to 256^3, each 8 times the arithmetic
and 4 times the bytes?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
ENOUGH = 128  # tiles for all SMs, or nearly; of the smaller ones in float32 twice as many
# The largest is taken of which there are so many, and that no product is smaller than
HALF = [
    {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 3, "num_warps": 8},
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 3, "num_warps": 4},
]
FLOAT = [  # float32, on CUDA cores
    {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, "num_stages": 3, "num_warps": 4},
    {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "num_stages": 3, "num_warps": 4},
]


def inputs(batch=40, m=128, n=128, k=128, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    y = torch.randn(batch, *((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(batch, m, k, dtype=dtype, device=device), "y": y.mT if transposed else y}


def reference(x, y):
    return torch.bmm(x, y)


def library(x, y):
    return torch.bmm(x, y)


def cost(x, y):
    kind = {torch.float16: "fp16_flops", torch.bfloat16: "bf16_flops", torch.float32: "fp32_flops"}[x.dtype]
    result = x.shape[0] * x.shape[1] * y.shape[2] * x.element_size()
    return {"dram_bytes": x.nbytes + y.nbytes + result, kind: 2 * x.numel() * y.shape[2]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_batch, a_down, a_across, b_batch, b_down, b_across,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    across, tiles = tl.cdiv(n, BLOCK_N), tl.cdiv(n, BLOCK_N) * tl.cdiv(m, BLOCK_M)
    tile, product = tl.program_id(0) % tiles, (tl.program_id(0) // tiles).to(tl.int64)
    a_ptr, b_ptr, c_ptr = a_ptr + product * a_batch, b_ptr + product * b_batch, c_ptr + product * m * n
    row = (tile // across * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]  # 64 bits: of offsets beyond 2^31
    column = (tile % across * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_at = a_ptr + row * a_down + inner.to(tl.int64)[None, :] * a_across
    b_at = b_ptr + inner.to(tl.int64)[:, None] * b_down + column * b_across
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_at, mask=(row < m) & (inner[None, :] < k - start), other=0.0)
        b = tl.load(b_at, mask=(inner[:, None] < k - start) & (column < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")  # of float32: no TF32
        a_at += tl.full((), BLOCK_K, tl.int64) * a_across
        b_at += tl.full((), BLOCK_K, tl.int64) * b_down
    tl.store(c_ptr + row * n + column, total, mask=(row < m) & (column < n))


def shape_of(products, m, n, dtype):
    """The configuration for so many products at once."""
    (*larger, smallest), enough = (FLOAT, 2 * ENOUGH) if dtype == torch.float32 else (HALF, ENOUGH)
    for shape in larger:
        whole = m // shape["BLOCK_M"] * (n // shape["BLOCK_N"])
        if products * whole >= enough:
            return shape
    return smallest


def run(x, y):
    (batch, m, k), n = x.shape, y.shape[2]
    c = torch.empty(batch, m, n, dtype=x.dtype, device=x.device)
    shape = shape_of(batch, m, n, x.dtype)
    tiles = triton.cdiv(m, shape["BLOCK_M"]) * triton.cdiv(n, shape["BLOCK_N"])
    if c.numel():
        matmul_kernel[(batch * tiles,)](x, y, c, m, n, k, *x.stride(), *y.stride(), **shape)
    return c
