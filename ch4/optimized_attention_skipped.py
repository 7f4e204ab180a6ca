"""Attention without what a causal mask makes zero: half the blocks are skipped, and one or two a row of blocks masked.

The softmax of a program's rows needs the columns up to its last row's. The others are n (n - 1) / 2 of n^2 scores:

    blocks before the first row    all their scores are seen: no comparison, no selection
    blocks on the diagonal         masked, BLOCK_M / BLOCK_N of them
    blocks behind the last row     not even read

Without a mask, only a block that reaches beyond n needs one. The programs with the longest way to go start first, so
that no long one is left over at the end. And exp(x / sqrt(d) - m) is 2^(x * c - m * c) with c = log2(e) / sqrt(d): the
GPU knows powers of two only, and what exp multiplies by before goes into the one multiply-add that is needed anyway.

    a score, d = 64, on an SM (9.0)    256 operations of the tensor cores, 4096 a cycle: 1/16 of a cycle
                                       1 power of two, 16 a cycle: 1/16 of a cycle, too

Predict before you measure: what is skipping worth at n = 1024 and at 16,384? Where is the rest of the factor 2?
"""

import attending
import torch
import triton
import triton.language as tl

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.25)  # with a causal mask the first rows are many times the others, and so are their errors
# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (64, 64, 3, 4)}
OTHERS = {64: (64, 64, 2, 4), 128: (64, 32, 2, 4)}  # tensor cores that take all they multiply from registers
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


def reference(q, k, v, causal):
    return attending.exact(q, k, v, causal)


def library(q, k, v, causal):
    return attending.by("FLASH_ATTENTION", q, k, v, causal)


def library_cudnn(q, k, v, causal):
    return attending.by("CUDNN_ATTENTION", q, k, v, causal)


def library_efficient(q, k, v, causal):
    return attending.by("EFFICIENT_ATTENTION", q, k, v, causal)


def cost(q, k, v, causal):
    return {"dram_bytes": 4 * q.nbytes, **attending.flops(2, q, causal)}  # read q, k, v, write o; q @ k.T, p @ v


@triton.jit
def add_block(s, v, row_max, total, o, scale):
    new = tl.maximum(row_max, tl.max(s, 1) * scale)
    p, shrink = tl.exp2(s * scale - new[:, None]), tl.exp2(row_max - new)
    o = tl.dot(p.to(v.dtype), v, o * shrink[:, None], input_precision="ieee")
    return new, total * shrink + tl.sum(p, 1), o


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, n, scale, D: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest first
    at = tl.program_id(1).to(tl.int64) * n * D  # 64 bits: a tensor may have more than 2^31 elements
    row, column, lane = start + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, D)
    q = tl.load(q_ptr + at + row[:, None] * D + lane, mask=row[:, None] < n, other=0.0)
    row_max = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    o = tl.zeros((BLOCK_M, D), tl.float32)
    whole = (start if CAUSAL else n) // BLOCK_N * BLOCK_N  # columns before it: in blocks that every row sees all of
    last = tl.minimum(start + BLOCK_M, n) if CAUSAL else n
    tile = column[:, None] * D + lane
    for first in tl.range(0, whole, BLOCK_N, num_stages=STAGES):
        s = tl.dot(q, tl.load(k_ptr + at + first * D + tile).T, input_precision="ieee")
        v = tl.load(v_ptr + at + first * D + tile)
        row_max, total, o = add_block(s, v, row_max, total, o, scale)
    for first in tl.range(whole, last, BLOCK_N, num_stages=STAGES):
        inside = first + column < n
        k = tl.load(k_ptr + at + first * D + tile, mask=inside[:, None], other=0.0)
        s = tl.dot(q, k.T, input_precision="ieee")
        s = tl.where(first + column <= row[:, None] if CAUSAL else inside[None, :], s, float("-inf"))
        v = tl.load(v_ptr + at + first * D + tile, mask=inside[:, None], other=0.0)
        row_max, total, o = add_block(s, v, row_max, total, o, scale)
    tl.store(o_ptr + at + row[:, None] * D + lane, o / total[:, None], mask=row[:, None] < n)


def run(q, k, v, causal):
    width, (q, k, v) = q.shape[3], attending.widened(q, k, v)
    o, (batch, heads, n, d) = torch.empty_like(q), q.shape
    block_m, block_n, stages, warps = attending.tiles(q, LARGE, OTHERS)
    grid = (triton.cdiv(n, block_m), batch * heads)
    attention_kernel[grid](
        q, k, v, o, n, width**-0.5 * LOG2_E, D=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return o[..., :width].contiguous()
