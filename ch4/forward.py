"""Attention's forward pass for a backward pass to come: o, and of each row the logarithm of its softmax's sum."""

import attending
import torch
import triton
import triton.language as tl

# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (64, 64, 3, 4)}
OTHERS = {64: (64, 64, 2, 4), 128: (64, 32, 2, 4)}  # tensor cores that take all they multiply from registers
LOG2_E = 1.4426950408889634


@triton.jit
def add_block(s, v, row_max, total, o, scale):
    new = tl.maximum(row_max, tl.max(s, 1) * scale)
    p, shrink = tl.exp2(s * scale - new[:, None]), tl.exp2(row_max - new)
    o = tl.dot(p.to(v.dtype), v, o * shrink[:, None], input_precision="ieee")
    return new, total * shrink + tl.sum(p, 1), o


@triton.jit
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, n, padded, scale, D: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest first
    head = tl.program_id(1).to(tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    at = head * n * D
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
    lse = tl.where(row < n, row_max + tl.log2(total), float("inf"))  # 2^(s - inf) = 0: rows beyond n weigh nothing
    tl.store(lse_ptr + head * padded + row, lse, mask=row < padded)


def forward(q, k, v, scale, causal):
    """o [batch, heads, n, d]; and log2 of each row's sum of e^(s * scale), float32 [batch * heads, padded]:
    rows up to a multiple of 128, infinite beyond n. q, k, v: contiguous.
    """
    o, (batch, heads, n, d) = torch.empty_like(q), q.shape
    padded = triton.cdiv(n, 128) * 128
    lse = torch.empty(batch * heads, padded, device=q.device)
    block_m, block_n, stages, warps = attending.tiles(q, LARGE, OTHERS)
    grid = (padded // block_m, batch * heads)
    forward_kernel[grid](
        q, k, v, o, lse, n, padded, scale * LOG2_E, D=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return o, lse


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, n, padded, D: tl.constexpr, BLOCK: tl.constexpr):
    row, head = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64)
    tile, inside = head * n * D + row[:, None] * D + tl.arange(0, D), row[:, None] < n
    o = tl.load(o_ptr + tile, mask=inside, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + tile, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta_ptr + head * padded + row, tl.sum(o * do, 1))  # = rowsum(p * dp)


def row_products(o, do, padded):
    """rowsum(o * do), float32 [batch * heads, padded], 0 beyond n. o, do: contiguous."""
    batch, heads, n, d = o.shape
    delta = torch.empty(batch * heads, padded, device=o.device)
    delta_kernel[(padded // 128, batch * heads)](o, do, delta, n, padded, D=d, BLOCK=128, num_warps=8)
    return delta
