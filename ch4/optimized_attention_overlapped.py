"""Attention that overlaps the softmax with matrix products: p @ v of each block is issued one block later.

Problem: in `optimized_attention_tma.py` the three steps of a block run in sequence within a warp: qk = q @ k.T, the
softmax of qk, acc += p @ v. The tensor cores are idle during the softmax, unless another warp uses them.
Idea: on capability 9.0 a matrix product is asynchronous. After block j's scores we issue p @ v of block j - 1. Its sums
are needed in block j + 1 only, so the compiler, which places the waits, can wait for them there:

    issue qk = q @ k[j].T, wait
    issue acc = acc * alpha + p @ v[j-1]     p and alpha are of block j-1
    p, alpha = softmax of qk                 meanwhile

Cost: registers. p [BLOCK, BLOCK] is alive beside the next qk: 32 a thread each, with 128 threads.
Predict: for a block of 64 x 64, d = 64, an SM needs 128 cycles a product, and 256 cycles for 4096 powers of two at 16 a
cycle (capability 9.0). If a warp were alone, how many times as fast could it be at most?
"""

import attention_common
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

VERSUS = "tma"
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
    for start_n in range(0, last, BLOCK):
        k = k_desc.load([head, start_n, 0]).reshape(BLOCK, HEAD_DIM)
        qk = tl.dot(q, k.T)
        # From start_n, not kept from the last step: loads ahead need addresses that no step has to end for
        before = tl.where(start_n == 0, last, start_n - BLOCK)  # first column of the block whose weights are in p
        v = v_desc.load([head, before, 0]).reshape(BLOCK, HEAD_DIM)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
    v = v_desc.load([head, tl.where(last == 0, last, last - BLOCK), 0]).reshape(BLOCK, HEAD_DIM)
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
