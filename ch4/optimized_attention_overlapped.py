"""Attention that overlaps the softmax with matrix products: p @ v of each block is issued one block later.

Problem: in `optimized_attention_tma.py` the three steps of a block run in sequence within a warp: qk = q @ k.T, the
softmax of qk, acc += p @ v. The tensor cores are idle during the softmax, unless another warp uses them.
Idea: on capability 9.0 a matrix product is asynchronous. After block j's scores we issue p @ v of block j - 1, and wait
for it in block j + 1:

    issue qk = q @ k[j].T, wait
    issue acc = acc * alpha + p @ v[j-1]     p and alpha are of block j-1
    p, alpha = softmax of qk                 meanwhile

Cost: registers. p [BLOCK_M, BLOCK_N] is alive beside the next qk: 32 a thread each, with 128 threads. With 128 rows
(d = 128 without a mask) they are 64 each, with 128 for acc: 256, one more than a thread can have, and some are spilled.
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
# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS
LARGE = {64: (64, 64, 2, 4), 128: (64, 64, 2, 4)}
LARGE_FULL = {64: (64, 64, 2, 4), 128: (128, 64, 2, 4)}  # without a mask
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
    p, alpha = tl.zeros((BLOCK_M, BLOCK_N), tl.float32), m_i  # there is no block before the first
    # Columns before `lo`: blocks that every row sees completely
    lo = (start_m if CAUSAL else N_CTX - 1) // BLOCK_N * BLOCK_N
    MASKED: tl.constexpr = max(BLOCK_M, BLOCK_N) if CAUSAL else BLOCK_N  # columns
    for beyond in tl.static_range(0, MASKED, BLOCK_N):
        start_n = lo + beyond
        qk = tl.dot(q, k_desc.load([head, start_n, 0]).reshape(BLOCK_N, HEAD_DIM).T, input_precision="ieee")
        mask = start_n + offs_n <= offs_m[:, None] if CAUSAL else (start_n + offs_n < N_CTX)[None, :]
        qk = tl.where(mask, qk, float("-inf"))
        if beyond > 0:
            v = v_desc.load([head, start_n - BLOCK_N, 0]).reshape(BLOCK_N, HEAD_DIM)
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
    pending = lo + MASKED - BLOCK_N  # first column of the block whose weights are in p
    for start_n in tl.range(0, lo, BLOCK_N, num_stages=STAGES):
        weights = p.to(k_desc.dtype)  # while q @ k.T runs
        qk = tl.dot(q, k_desc.load([head, start_n, 0]).reshape(BLOCK_N, HEAD_DIM).T, input_precision="ieee")
        v = v_desc.load([head, tl.where(start_n == 0, pending, start_n - BLOCK_N), 0]).reshape(BLOCK_N, HEAD_DIM)
        acc = tl.dot(weights, v, acc * alpha[:, None], input_precision="ieee")
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, qk_scale)
    v = v_desc.load([head, tl.where(lo == 0, pending, lo - BLOCK_N), 0]).reshape(BLOCK_N, HEAD_DIM)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
    o_desc.store([head, start_m, 0], (acc / l_i[:, None]).to(v.dtype).reshape(1, BLOCK_M, HEAD_DIM))


def run(q, k, v, causal):
    width, (q, k, v) = q.shape[3], attention_common.widened(q, k, v)
    o, (batch, heads, n, d) = torch.empty_like(q), q.shape
    if not o.numel():
        return o[..., :width].contiguous()
    block_m, block_n, stages, warps = attention_common.tiles(q, *[LARGE if causal else LARGE_FULL] * 2)
    shape, strides = [batch * heads, n, d], [n * d, d, 1]
    q, o = (TensorDescriptor(each, shape, strides, [1, block_m, d]) for each in (q, o))
    k, v = (TensorDescriptor(each, shape, strides, [1, block_n, d]) for each in (k, v))
    grid = (triton.cdiv(n, block_m), batch * heads)
    attention_kernel[grid](
        q, k, v, o, n, width**-0.5 * LOG2_E, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return o.base[..., :width].contiguous()
