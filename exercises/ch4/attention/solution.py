"""Causal attention in one kernel: the softmax of a row is computed block by block, and its scores stay in registers.

A row keeps three things: the largest score so far, the sum of the exponentials, and the sum of the weighted rows of v.
Both sums are relative to the largest score. If a block has a larger one, both have to be multiplied by
2^(old - new) before the block is added. The division comes after the last block. Exponentials are powers of two: the
factor log2(e) is part of the scale. Behind the last row of the program all scores are masked: these blocks are not read
at all. Only the blocks from the diagonal on are masked, so there are two loops. The longest programs start first.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"heads": 2, "n": 150, "d": 16}, "check/one": {"heads": 1, "n": 1, "d": 16},
    "check/wide": {"heads": 1, "n": 65, "d": 64}, "count": {"heads": 2, "n": 320, "d": 16},
    "default": {"heads": 128, "n": 4096, "d": 64},
}  # fmt: skip


def inputs(heads, n, d, device="cuda"):
    return {name: torch.randn(heads, n, d, device=device).half() for name in ("q", "k", "v")}


def reference(q, k, v):
    found = []
    for head in range(q.shape[0]):  # all scores at once may not fit into memory
        scores = q[head] @ k[head].T * q.shape[2] ** -0.5
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
        found.append(torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v[head])
    return torch.stack(found)


def cost(q, k, v):
    heads, n, d = q.shape
    return {"fp16_flops": 2 * heads * n * (n + 1) * d, "dram_bytes": 4 * q.nbytes}


@triton.jit
def add_block(scores, v, largest, total, acc):
    """A block of scores (base 2) and of v, to what a row has kept."""
    new = tl.maximum(largest, tl.max(scores, 1))
    p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(largest - new)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
    return new, total * shrink + tl.sum(p, 1), acc


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM  # the longest first
    head = tl.program_id(1).to(tl.int64) * n * D
    rows, dims = start + tl.arange(0, BM), tl.arange(0, D)
    own = head + rows[:, None] * D + dims[None, :]
    q = tl.load(q_ptr + own, mask=rows[:, None] < n, other=0.0)
    factor = scale * 1.4426950408889634  # log2(e)
    largest, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    whole = start // BN * BN  # every row sees all columns before it
    for first in tl.range(0, whole, BN, num_stages=3):
        columns = first + tl.arange(0, BN)
        block = head + columns[:, None] * D + dims[None, :]
        scores = tl.dot(q, tl.load(k_ptr + block).T) * factor
        largest, total, acc = add_block(scores, tl.load(v_ptr + block), largest, total, acc)
    for first in tl.range(whole, tl.minimum(start + BM, n), BN, num_stages=3):
        columns = first + tl.arange(0, BN)
        block, there = head + columns[:, None] * D + dims[None, :], columns[:, None] < n
        scores = tl.dot(q, tl.load(k_ptr + block, mask=there, other=0.0).T) * factor
        scores = tl.where(columns[None, :] <= rows[:, None], scores, float("-inf"))
        v = tl.load(v_ptr + block, mask=there, other=0.0)
        largest, total, acc = add_block(scores, v, largest, total, acc)
    tl.store(out_ptr + own, acc / total[:, None], mask=rows[:, None] < n)


def run(q, k, v):
    out, (heads, n, d) = torch.empty_like(q), q.shape
    grid = (triton.cdiv(n, 64), heads)
    attention_kernel[grid](q, k, v, out, n, d**-0.5, D=d, BM=64, BN=64, num_warps=4)
    return out
