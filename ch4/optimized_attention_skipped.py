"""Attention without the blocks that a causal mask makes zero: half of them are skipped, and one a program is masked.

Problem: `optimized_attention_online.py` computes n^2 scores, of which a causal mask makes n (n - 1) / 2 zero.
Idea: a program needs the columns up to that of its last row only. Blocks are square, so they are

    on the diagonal         one block: computed and masked, first of all
    before the diagonal     all their scores are seen: no comparison, no selection
    behind the diagonal     not even read

Without a mask, the last block comes first: only it may reach beyond n.
Cost: a block's lines stand twice. Programs have different lengths, so those of a head start with the longest.
Predict: with blocks of 64 x 64 and n = 4096 (the default is 2048), how many times fewer blocks are computed, and is the
ratio measured there larger or smaller than that?
"""

import attention_common
import torch
import triton
import triton.language as tl

VERSUS = "online"
REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


@triton.jit
def online_softmax(qk, m_i, l_i, qk_scale):
    m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
    p, alpha = tl.exp2(qk * qk_scale - m_ij[:, None]), tl.exp2(m_i - m_ij)
    return p, alpha, m_ij, l_i * alpha + tl.sum(p, 1)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, N_CTX, qk_scale, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr
):
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK  # the longest first
    off_h = tl.program_id(1).to(tl.int64) * N_CTX * HEAD_DIM  # 64 bits: a tensor may have more than 2^31 elements
    offs_m, offs_n = start_m + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    offsets = offs_n[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)  # of a block's elements
    q = tl.load(q_ptr + off_h + start_m * HEAD_DIM + offsets, mask=offs_m[:, None] < N_CTX, other=0.0)
    m_i = tl.full((BLOCK,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, HEAD_DIM), tl.float32)
    last = start_m if CAUSAL else (N_CTX - 1) // BLOCK * BLOCK  # first column of the only block that is masked
    mask = last + offs_n < N_CTX
    k = tl.load(k_ptr + off_h + last * HEAD_DIM + offsets, mask=mask[:, None], other=0.0)
    qk = tl.dot(q, k.T)
    qk = tl.where(last + offs_n <= offs_m[:, None] if CAUSAL else mask[None, :], qk, float("-inf"))
    p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
    v = tl.load(v_ptr + off_h + last * HEAD_DIM + offsets, mask=mask[:, None], other=0.0)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    for start_n in range(0, last, BLOCK):
        k = tl.load(k_ptr + off_h + start_n * HEAD_DIM + offsets)
        qk = tl.dot(q, k.T)
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
        v = tl.load(v_ptr + off_h + start_n * HEAD_DIM + offsets)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    tl.store(o_ptr + off_h + start_m * HEAD_DIM + offsets, acc / l_i[:, None], mask=offs_m[:, None] < N_CTX)


def run(q, k, v, causal):
    d, (q, k, v) = q.shape[3], attention_common.widened(q, k, v)  # to a power of two, with zeros
    o, (batch, heads, n, width) = torch.empty_like(q), q.shape
    grid = (triton.cdiv(n, 64), batch * heads)
    attention_kernel[grid](
        q, k, v, o, n, d**-0.5 * LOG2_E, HEAD_DIM=width, CAUSAL=causal, BLOCK=64, num_warps=4, num_stages=2
    )
    return o[..., :d].contiguous()
