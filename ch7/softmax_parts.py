"""A softmax in parts, block by block and share by share: `optimized_decode_attention_split.py` says how they merge.

`online_softmax` is the step of a block, in powers of two: m_i is the largest score so far, l_i the sum of the weights.
`merge` puts the answers of a head's shares together, each with its log-sum-exp (to the base 2).
"""

import triton
import triton.language as tl


@triton.jit
def online_softmax(qk, m_i, l_i, AXIS: tl.constexpr):
    m_ij = tl.maximum(m_i, tl.max(qk, AXIS))
    safe_m = tl.where(m_ij == float("-inf"), 0.0, m_ij)  # -inf - -inf would be NaN
    p, alpha = tl.exp2(qk - tl.expand_dims(safe_m, AXIS)), tl.exp2(m_i - safe_m)
    return p, alpha, m_ij, l_i * alpha + tl.sum(p, AXIS)


@triton.jit
def merge(
    parts_ptr, lse_ptr, o_ptr, first, shares, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    offs_h, offs_d = tl.arange(0, BLOCK_H), tl.arange(0, BLOCK_D)
    m_i = tl.full((BLOCK_H,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_H,), tl.float32)
    acc = tl.zeros((BLOCK_H, BLOCK_D), tl.float32)
    for start in range(0, shares, BLOCK_S):
        offs_s = start + tl.arange(0, BLOCK_S)[:, None]
        rows, mask = (first + offs_h) * shares + offs_s, (offs_h < HEADS) & (offs_s < shares)
        lse = tl.load(lse_ptr + rows, mask=mask, other=float("-inf"), cache_modifier=".cg")
        rows, mask = rows[:, :, None] * HEAD_DIM + offs_d, mask[:, :, None] & (offs_d < HEAD_DIM)
        parts = tl.load(parts_ptr + rows, mask=mask, other=0.0, cache_modifier=".cg")
        p, alpha, m_i, l_i = online_softmax(lse, m_i, l_i, 0)
        acc = acc * alpha[:, None] + tl.sum(parts * p[:, :, None], 0)
    o_mask = (offs_h < HEADS)[:, None] & (offs_d < HEAD_DIM)
    tl.store(o_ptr + (first + offs_h)[:, None] * HEAD_DIM + offs_d, acc / l_i[:, None], mask=o_mask)
