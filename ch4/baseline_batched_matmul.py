"""Multiply 40 pairs of 128 x 128 matrices, one after the other: 40 launches, of which each finds most SMs idle.

A product of 128^3 in float16 is 4 tiles of 64 x 64, for 4 of 132 SMs, and over as soon as its two blocks of 64 have
come:

    2 * 128^3 = 4.2 MFLOP      4 SMs do that in half a microsecond
    2 * 32 KiB read, 32 KiB written

The next kernel begins when the last program of this one has ended, and waits for its first load as all do: 40 launches
and 40 times a load from DRAM, and the CPU needs longer to ask for them than the GPU to do them.

Predict before you measure: `optimized_batched_matmul.py` is one launch. Is it 40 times as fast at 40 x 128^3? And at
4 x 2048^3, where each product has 128 tiles of 128 x 256?
"""

import torch
import triton
import triton.language as tl

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"batch": 3, "m": 127, "n": 65, "k": 129},
    "check/one": {"batch": 1, "m": 1, "n": 1, "k": 1},
    "check/row": {"batch": 7, "m": 1, "n": 131, "k": 67},
    "check/fp32": {"batch": 3, "m": 67, "n": 65, "k": 33, "dtype": "float32"},
    "check/transposed": {"batch": 3, "m": 33, "n": 65, "k": 129, "transposed": True},
    "check/nothing": {"batch": 3, "m": 5, "n": 7, "k": 0},
    "check/none": {"batch": 0, "m": 5, "n": 7, "k": 3},
    "default": {"batch": 40, "m": 128, "n": 128, "k": 128},
    "small/40x64/fp16": {"m": 64, "n": 64, "k": 64},
    "small/40x64/bf16": {"m": 64, "n": 64, "k": 64, "dtype": "bfloat16"},
    "small/40x64/fp32": {"m": 64, "n": 64, "k": 64, "dtype": "float32"},
    "medium/40x128/fp16": {}, "medium/40x128/bf16": {"dtype": "bfloat16"}, "medium/40x128/fp32": {"dtype": "float32"},
    "medium/40x128/fp16/transposed": {"transposed": True},
    "large/40x256/fp16": {"m": 256, "n": 256, "k": 256},
    "large/40x256/bf16": {"m": 256, "n": 256, "k": 256, "dtype": "bfloat16"},
    "large/40x256/fp32": {"m": 256, "n": 256, "k": 256, "dtype": "float32"},
    "large/4x2048/fp16": {"batch": 4, "m": 2048, "n": 2048, "k": 2048},  # each product fills a GPU by itself
}  # fmt: skip
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
    a_ptr, b_ptr, c_ptr, m, n, k, a_down, a_across, b_down, b_across,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    across, tile = tl.cdiv(n, BLOCK_N), tl.program_id(0)
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
    shape = shape_of(1, m, n, x.dtype)
    tiles = triton.cdiv(m, shape["BLOCK_M"]) * triton.cdiv(n, shape["BLOCK_N"])
    for i in range(batch if m * n else 0):
        matmul_kernel[(tiles,)](x[i], y[i], c[i], m, n, k, *x.stride()[1:], *y.stride()[1:], **shape)
    return c
