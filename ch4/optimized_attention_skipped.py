"""Attention without the blocks that a causal mask makes zero: half of them are skipped, and few of the rest are masked.

Problem: `optimized_attention.py` computes n^2 scores, of which a causal mask makes n (n - 1) / 2 zero.
Idea: a program needs the columns up to that of its last row only.

    blocks before the first row    all their scores are seen: no comparison, no selection
    blocks on the diagonal         computed and masked, BLOCK_M / BLOCK_N of them
    blocks behind the last row     not even read

Without a mask, only a block that reaches beyond n is masked. And exp(x / sqrt(d) - m) becomes 2^(x * c - m * c) with
c = log2(e) / sqrt(d): the GPU has an instruction for powers of two, and the factor is part of one multiply-add.
Cost: two loops instead of one. Programs have different lengths, so the longest start first.
Predict: with blocks of 64 x 64 and n = 4096, how many times fewer blocks are computed, and is the measured ratio larger
or smaller than that?
"""

import attention_common
import torch
import triton
import triton.language as tl

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger
# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (64, 64, 3, 4)}
OTHERS = {64: (64, 64, 2, 4), 128: (64, 32, 2, 4)}  # tensor cores that read their operands from registers
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(3))
    return {"q": q, "k": k, "v": v, "causal": causal}


@triton.jit
def add_block(qk, v, m_i, l_i, acc, qk_scale):
    m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
    p, alpha = tl.exp2(qk * qk_scale - m_ij[:, None]), tl.exp2(m_i - m_ij)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
    return m_ij, l_i * alpha + tl.sum(p, 1), acc


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, N_CTX, qk_scale, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest first
    off_h = tl.program_id(1).to(tl.int64) * N_CTX * HEAD_DIM  # 64 bits: a tensor may have more than 2^31 elements
    offs_m, offs_n, offs_d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + off_h + offs_m[:, None] * HEAD_DIM + offs_d, mask=offs_m[:, None] < N_CTX, other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    lo = (start_m if CAUSAL else N_CTX) // BLOCK_N * BLOCK_N  # columns before it: blocks that every row sees completely
    hi = tl.minimum(start_m + BLOCK_M, N_CTX) if CAUSAL else N_CTX
    offsets = offs_n[:, None] * HEAD_DIM + offs_d
    for start_n in tl.range(0, lo, BLOCK_N, num_stages=STAGES):
        qk = tl.dot(q, tl.load(k_ptr + off_h + start_n * HEAD_DIM + offsets).T, input_precision="ieee")
        v = tl.load(v_ptr + off_h + start_n * HEAD_DIM + offsets)
        m_i, l_i, acc = add_block(qk, v, m_i, l_i, acc, qk_scale)
    for start_n in tl.range(lo, hi, BLOCK_N, num_stages=STAGES):
        mask = start_n + offs_n < N_CTX
        k = tl.load(k_ptr + off_h + start_n * HEAD_DIM + offsets, mask=mask[:, None], other=0.0)
        qk = tl.dot(q, k.T, input_precision="ieee")
        qk = tl.where(start_n + offs_n <= offs_m[:, None] if CAUSAL else mask[None, :], qk, float("-inf"))
        v = tl.load(v_ptr + off_h + start_n * HEAD_DIM + offsets, mask=mask[:, None], other=0.0)
        m_i, l_i, acc = add_block(qk, v, m_i, l_i, acc, qk_scale)
    tl.store(o_ptr + off_h + offs_m[:, None] * HEAD_DIM + offs_d, acc / l_i[:, None], mask=offs_m[:, None] < N_CTX)


def run(q, k, v, causal):
    width, (q, k, v) = q.shape[3], attention_common.widened(q, k, v)
    o, (batch, heads, n, d) = torch.empty_like(q), q.shape
    block_m, block_n, stages, warps = attention_common.tiles(q, LARGE, OTHERS)
    grid = (triton.cdiv(n, block_m), batch * heads)
    attention_kernel[grid](
        q, k, v, o, n, width**-0.5 * LOG2_E, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return o[..., :width].contiguous()
