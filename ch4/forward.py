"""Attention's forward pass as the backward pass needs it: o, and for each row its log-sum-exp."""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def online_softmax(qk, m_i, l_i, qk_scale):
    m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
    p, alpha = tl.exp2(qk * qk_scale - m_ij[:, None]), tl.exp2(m_i - m_ij)
    return p, alpha, m_ij, l_i * alpha + tl.sum(p, 1)


@triton.jit
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, N_CTX, padded, qk_scale,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK  # the longest first
    head = tl.program_id(1).to(tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    off_h = head * N_CTX * HEAD_DIM
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
    lse = tl.where(offs_m < N_CTX, m_i + tl.log2(l_i), float("inf"))
    tl.store(lse_ptr + head * padded + offs_m, lse)


def row_sums(q):
    """Room for the log2 of each row's sum: float32 [batch * heads, n up to a multiple of 128], infinite beyond n."""
    batch, heads, n, _ = q.shape
    lse = torch.empty(batch * heads, triton.cdiv(n, 128) * 128, device=q.device)
    if n < lse.shape[1]:
        lse[:, n:] = float("inf")  # 2^(s - inf) = 0: rows beyond n weigh nothing
    return lse


def forward(q, k, v, scale, causal):
    """o [batch, heads, n, d]; and log2 of each row's sum of e^(s * scale), as `row_sums`. q, k, v: contiguous."""
    o, lse, (batch, heads, n, d) = torch.empty_like(q), row_sums(q), q.shape
    grid = (triton.cdiv(n, 64), batch * heads)  # a program without a row would read beyond k and v
    forward_kernel[grid](
        q, k, v, o, lse, n, lse.shape[1], scale * LOG2_E, HEAD_DIM=d, CAUSAL=causal, BLOCK=64, num_warps=4, num_stages=2
    )
    return o, lse


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, N_CTX, padded, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr):
    offs_m, head = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64)
    offsets = head * N_CTX * HEAD_DIM + offs_m[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)
    mask = offs_m[:, None] < N_CTX
    o = tl.load(o_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(delta_ptr + head * padded + offs_m, tl.sum(o * do, 1))  # = rowsum(p * dp)


def row_products(o, do, padded):
    """rowsum(o * do), float32 [batch * heads, padded], 0 beyond n. o, do: contiguous."""
    batch, heads, n, d = o.shape
    delta = torch.empty(batch * heads, padded, device=o.device)
    delta_kernel[(padded // 128, batch * heads)](o, do, delta, n, padded, HEAD_DIM=d, BLOCK=128, num_warps=8)
    return delta
