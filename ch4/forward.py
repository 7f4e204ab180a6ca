"""Attention's forward pass as the backward pass needs it: o, and for each row its log-sum-exp."""

import attention_common
import torch
import triton
import triton.language as tl

# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (64, 64, 3, 4)}
OTHERS = {64: (64, 64, 2, 4), 128: (64, 32, 2, 4)}  # tensor cores that read their operands from registers
LOG2_E = 1.4426950408889634


@triton.jit
def add_block(qk, v, m_i, l_i, acc, qk_scale):
    m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
    p, alpha = tl.exp2(qk * qk_scale - m_ij[:, None]), tl.exp2(m_i - m_ij)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
    return m_ij, l_i * alpha + tl.sum(p, 1), acc


@triton.jit
def forward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, N_CTX, padded, qk_scale, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest first
    head = tl.program_id(1).to(tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    off_h = head * N_CTX * HEAD_DIM
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
    lse = tl.where(offs_m < N_CTX, m_i + tl.log2(l_i), float("inf"))
    tl.store(lse_ptr + head * padded + offs_m, lse, mask=offs_m < padded)


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
    block_m, block_n, stages, warps = attention_common.tiles(q, LARGE, OTHERS)
    grid = (triton.cdiv(n, block_m), batch * heads)  # a program without a row would read beyond k and v
    forward_kernel[grid](
        q, k, v, o, lse, n, lse.shape[1], scale * LOG2_E, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
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
