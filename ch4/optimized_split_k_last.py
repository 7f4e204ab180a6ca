"""Multiply 16 rows by a long matrix with k split in 4, in one launch: who comes last to a tile adds up its 4 sums.

c = x @ w_b, [16, 16,384] @ [16,384, 4096]. As in `optimized_split_k.py` 256 programs write 1 MiB of sums. Then each of
them counts itself at its tile; the one that finds all others there adds up the 4 sums, always in the same order:

    write the sums; barrier    all threads of this program have written
    count, acq_rel             what was written before is seen by whoever counts later
    if last                    read 4 * 4 KiB, all at a time; write the tile; set the counter back

A launch is saved. But the last one reads its 16 KiB alone, and of 132 SMs only 64 have a last one; the second launch
had 256 programs for that.

Predict before you measure: which is shorter, the launch or the lonely reading? And with 16 x 64 results and
k = 262,144, where one program reads 256 sums of 4 KiB, four at a time?
"""

import torch
import triton
import triton.language as tl

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
SKINNY = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}  # up to 16 rows
SQUARE = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "num_stages": 4, "num_warps": 4}
PROGRAMS = 264  # at most, where k is split: 2 for each of 132 SMs
AT_ONCE = tl.constexpr(4)  # sums that the last one reads at a time


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
    a_ptr, b_ptr, parts_ptr, arrived_ptr, c_ptr, m, n, k, depth, splits, a_down, a_across, b_down, b_across,
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
    at, inside, part = row * n + column, (row < m) & (column < n), tl.cast(m, tl.int64) * n
    tl.store(parts_ptr + split * part + at, total, mask=inside)
    tl.debug_barrier()
    if tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == splits - 1:
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for other in range(0, splits, AT_ONCE):
            for i in tl.static_range(AT_ONCE):  # loads that do not wait for each other; .cg: from L2, which has them
                there = inside & (other + i < splits)
                total += tl.load(parts_ptr + (other + i) * part + at, mask=there, other=0.0, cache_modifier=".cg")
        tl.store(c_ptr + at, total, mask=inside)
        tl.store(arrived_ptr + tile, 0)  # for the next call


def plan(m, n, k):
    """The configuration, how many tiles there are and how many programs share each, and how much of k one takes."""
    shape = SKINNY if m <= SKINNY["BLOCK_M"] else SQUARE
    tiles, steps = triton.cdiv(m, shape["BLOCK_M"]) * triton.cdiv(n, shape["BLOCK_N"]), triton.cdiv(k, shape["BLOCK_K"])
    each = max(triton.cdiv(steps, max(PROGRAMS // max(tiles, 1), 1)), 1)
    return shape, tiles, max(triton.cdiv(steps, each), 1), each * shape["BLOCK_K"]


def setup(x, w_b):
    tiles = plan(x.shape[0], w_b.shape[1], x.shape[1])[1]
    return {"arrived": torch.zeros(tiles, dtype=torch.int32, device=x.device)}


def run(x, w_b, arrived):
    (m, k), n = x.shape, w_b.shape[1]
    c = torch.empty(m, n, dtype=x.dtype, device=x.device)
    shape, tiles, splits, depth = plan(m, n, k)
    if c.numel():
        parts, strides = torch.empty(splits, m, n, device=x.device), (*x.stride(), *w_b.stride())
        matmul_kernel[(tiles * splits,)](x, w_b, parts, arrived, c, m, n, k, depth, splits, *strides, **shape)
    return c
