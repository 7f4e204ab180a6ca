"""Multiply 16 rows by a long matrix with k split in 4, added up by atomics: one workspace for all, no fixed order.

c = x @ w_b, [16, 16,384] @ [16,384, 4096]. As in `optimized_split_k.py` 256 programs read w_b together. Instead of
writing 1 MiB of sums they add them, element by element, to a result in float32 that L2 holds:

    set to zero    16 * 4096 * 4 bytes = 256 KiB written
    atomic adds    4 * 16 * 4096 = 262,144 of them, 4 to each address
    to float16     256 KiB read, 128 KiB written    3 launches in all

Which of 4 programs comes first is chance, and so are the last bits of the sum: (a + b) + c is not a + (b + c). Two
calls with equal inputs may differ. In float16, without the copy in float32, each add would round as well.

Predict before you measure: three launches against two. Which of them costs more, here and with 256 x 256 results,
where 32 programs add to each address?
"""

import torch
import triton
import triton.language as tl

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
SKINNY = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}  # up to 16 rows
SQUARE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}
PROGRAMS = 264  # at most, where k is split: 2 for each of 132 SMs


def inputs(m=16, n=4096, k=16_384, dtype="float16", transposed=False, device="cuda"):
    dtype = getattr(torch, dtype)
    w_b = torch.randn(*((n, k) if transposed else (k, n)), dtype=dtype, device=device)
    return {"x": torch.randn(m, k, dtype=dtype, device=device), "w_b": w_b.T if transposed else w_b}


def reference(x, w_b):
    return x @ w_b


def library(x, w_b):
    return x @ w_b


def cost(x, w_b):
    kind = "fp16_flops" if x.dtype == torch.float16 else "bf16_flops"
    result = x.shape[0] * w_b.shape[1] * x.element_size()
    return {"dram_bytes": x.nbytes + w_b.nbytes + result, kind: 2 * x.numel() * w_b.shape[1]}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, depth, a_down, a_across, b_down, b_across,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    across, tiles = tl.cdiv(n, BLOCK_N), tl.cdiv(n, BLOCK_N) * tl.cdiv(m, BLOCK_M)
    tile, split = tl.program_id(0) % tiles, tl.program_id(0) // tiles
    row = (tile // across * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]  # 64 bits: of offsets beyond 2^31
    column = (tile % across * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    inner = tl.arange(0, BLOCK_K)
    first = split * depth
    a_at = a_ptr + row * a_down + (first + inner).to(tl.int64)[None, :] * a_across
    b_at = b_ptr + (first + inner).to(tl.int64)[:, None] * b_down + column * b_across
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(first, min(first + depth, k), BLOCK_K):
        a = tl.load(a_at, mask=(row < m) & (inner[None, :] < k - start), other=0.0)
        b = tl.load(b_at, mask=(inner[:, None] < k - start) & (column < n), other=0.0)
        total = tl.dot(a, b, total)
        a_at += tl.full((), BLOCK_K, tl.int64) * a_across
        b_at += tl.full((), BLOCK_K, tl.int64) * b_down
    tl.atomic_add(c_ptr + row * n + column, total, mask=(row < m) & (column < n), sem="relaxed")


def plan(m, n, k):
    """The configuration, how many tiles there are and how many programs share each, and how much of k one takes."""
    shape = SKINNY if m <= SKINNY["BLOCK_M"] else SQUARE
    tiles, steps = triton.cdiv(m, shape["BLOCK_M"]) * triton.cdiv(n, shape["BLOCK_N"]), triton.cdiv(k, shape["BLOCK_K"])
    each = max(triton.cdiv(steps, max(PROGRAMS // max(tiles, 1), 1)), 1)
    return shape, tiles, max(triton.cdiv(steps, each), 1), each * shape["BLOCK_K"]


def run(x, w_b):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.zeros(m, n, device=x.device)
    shape, tiles, splits, depth = plan(m, n, k)
    if c.numel():
        matmul_kernel[(tiles * splits,)](x, w_b, c, m, n, k, depth, *x.stride(), *w_b.stride(), **shape)
    return c.to(x.dtype)
