"""Attention whose blocks of k and v are fetched by one thread: the tensor memory accelerator computes all addresses.

Problem: in `optimized_attention_skipped.py` the threads copy: 64 x 128 values of 2 bytes are 1024 copies of 16 bytes,
each with an address in registers.
Idea: a descriptor says how a tensor lies in memory and how large a block is. One instruction of one thread fetches a
block to shared memory, in the order that the tensor cores need, with zeros beyond n.
Cost: the bytes and the products are the same. Descriptors are made by the CPU, for each call. Their tensors have to
begin, and their rows to follow each other, at multiples of 16 bytes.
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
    q_desc, k_desc, v_desc, o_desc, N_CTX, qk_scale, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr
):
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK  # the longest first
    head = tl.program_id(1)
    offs_m, offs_n = start_m + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    q = q_desc.load([head, start_m, 0]).reshape(BLOCK, HEAD_DIM)
    m_i = tl.full((BLOCK,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, HEAD_DIM), tl.float32)
    last = start_m if CAUSAL else (N_CTX - 1) // BLOCK * BLOCK  # first column of the only block that is masked
    k = k_desc.load([head, last, 0]).reshape(BLOCK, HEAD_DIM)
    qk = tl.dot(q, k.T)
    qk = tl.where(last + offs_n <= (offs_m[:, None] if CAUSAL else N_CTX - 1), qk, float("-inf"))
    p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
    v = v_desc.load([head, last, 0]).reshape(BLOCK, HEAD_DIM)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    for start_n in range(0, last, BLOCK):
        k = k_desc.load([head, start_n, 0]).reshape(BLOCK, HEAD_DIM)
        qk = tl.dot(q, k.T)
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
        v = v_desc.load([head, start_n, 0]).reshape(BLOCK, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    o_desc.store([head, start_m, 0], (acc / l_i[:, None]).to(v.dtype).reshape(1, BLOCK, HEAD_DIM))


def run(q, k, v, causal):
    d, (q, k, v) = q.shape[3], attention_common.widened(q, k, v)  # to a power of two, with zeros
    o, (batch, heads, n, width) = torch.empty_like(q), q.shape
    descs = [TensorDescriptor.from_tensor(x.view(-1, n, width), [1, 64, width]) for x in (q, k, v, o)]
    grid = (triton.cdiv(n, 64), batch * heads)
    attention_kernel[grid](
        *descs, n, d**-0.5 * LOG2_E, HEAD_DIM=width, CAUSAL=causal, BLOCK=64, num_warps=4, num_stages=2
    )
    return o[..., :d].contiguous()
