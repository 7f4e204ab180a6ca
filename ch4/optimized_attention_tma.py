"""Attention whose blocks of k and v are fetched by one thread: the tensor memory accelerator computes all addresses.

Problem: in `optimized_attention_skipped.py` the threads copy: 64 x 128 values of 2 bytes are 1024 copies of 16 bytes,
each with an address in registers.
Idea: a descriptor says how a tensor lies in memory and how large a block is. One instruction of one thread fetches a
block to shared memory, in the order that the tensor cores need, with zeros beyond n.
Cost: the bytes and the products are the same. The masked blocks come first, outside the loop: with a causal mask those
on the diagonal, without one the last block.
Predict: is it faster than `optimized_attention_skipped.py`, or slower?
"""

import attention_common
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "skipped"
REQUIRES = {"capability": (9, 0)}
TOLERANCE = (0.1, 0.25)  # with a causal mask, values and errors of the first rows are much larger
# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS
LARGE = {64: (64, 64, 3, 4), 128: (64, 64, 2, 4)}
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
    q_desc, k_desc, v_desc, o_desc, N_CTX, qk_scale, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start_m, head = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M, tl.program_id(1)  # the longest first
    offs_m, offs_n = start_m + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    q = q_desc.load([head, start_m, 0]).reshape(BLOCK_M, HEAD_DIM)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    # Columns before `lo`: blocks that every row sees completely
    lo = (start_m if CAUSAL else N_CTX - 1) // BLOCK_N * BLOCK_N
    MASKED: tl.constexpr = max(BLOCK_M, BLOCK_N) if CAUSAL else BLOCK_N  # columns
    for beyond in tl.static_range(0, MASKED, BLOCK_N):
        start_n = lo + beyond
        qk = tl.dot(q, k_desc.load([head, start_n, 0]).reshape(BLOCK_N, HEAD_DIM).T, input_precision="ieee")
        mask = start_n + offs_n <= offs_m[:, None] if CAUSAL else (start_n + offs_n < N_CTX)[None, :]
        qk = tl.where(mask, qk, float("-inf"))
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
        v = v_desc.load([head, start_n, 0]).reshape(BLOCK_N, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
    for start_n in tl.range(0, lo, BLOCK_N, num_stages=STAGES):
        qk = tl.dot(q, k_desc.load([head, start_n, 0]).reshape(BLOCK_N, HEAD_DIM).T, input_precision="ieee")
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
        v = v_desc.load([head, start_n, 0]).reshape(BLOCK_N, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
    o_desc.store([head, start_m, 0], (acc / l_i[:, None]).to(v.dtype).reshape(1, BLOCK_M, HEAD_DIM))


def run(q, k, v, causal):
    width, (q, k, v) = q.shape[3], attention_common.widened(q, k, v)
    o, (batch, heads, n, d) = torch.empty_like(q), q.shape
    if not o.numel():
        return o[..., :width].contiguous()
    block_m, block_n, stages, warps = attention_common.tiles(q, LARGE, LARGE)
    shape, strides = [batch * heads, n, d], [n * d, d, 1]
    q, o = (TensorDescriptor(each, shape, strides, [1, block_m, d]) for each in (q, o))
    k, v = (TensorDescriptor(each, shape, strides, [1, block_n, d]) for each in (k, v))
    grid = (triton.cdiv(n, block_m), batch * heads)
    attention_kernel[grid](
        q, k, v, o, n, width**-0.5 * LOG2_E, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return o.base[..., :width].contiguous()
