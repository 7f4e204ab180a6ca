"""Attention's gradient of the queries: a program keeps a block of dq and walks over the keys; 3 products a block."""

import attention_common
import torch
import triton
import triton.language as tl

# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (128, 64, 3, 8)}
OTHERS = {64: (64, 32, 2, 4), 128: (64, 32, 2, 8)}  # tensor cores that read their operands from registers
LOG2_E = 1.4426950408889634


@triton.jit
def walk_keys(
    dq, q, do, lse, delta, k_ptr, v_ptr, N_CTX, qk_scale, lo, hi, offs_m,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for start_n in tl.range(lo, hi, BLOCK_N, num_stages=STAGES):
        offs_n, offs_d = start_n + tl.arange(0, BLOCK_N), tl.arange(0, HEAD_DIM)
        offsets, mask = offs_n[:, None] * HEAD_DIM + offs_d, offs_n < N_CTX
        k = tl.load(k_ptr + offsets, mask=mask[:, None] if MASKED else None, other=0.0 if MASKED else None)
        v = tl.load(v_ptr + offsets, mask=mask[:, None] if MASKED else None, other=0.0 if MASKED else None)
        qk = tl.dot(q, k.T, input_precision="ieee")
        dp = tl.dot(do, v.T, input_precision="ieee")
        p = tl.exp2(qk * qk_scale - lse[:, None])
        if MASKED:
            p = tl.where(offs_n <= offs_m[:, None] if CAUSAL else mask[None, :], p, 0.0)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(q.dtype), k, dq, input_precision="ieee")
    return dq


@triton.jit
def queries_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, N_CTX, padded, qk_scale, sm_scale,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest first
    head = tl.program_id(1).to(tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    off_h = head * N_CTX * HEAD_DIM
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offsets, mask = offs_m[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM), offs_m[:, None] < N_CTX
    q = tl.load(q_ptr + off_h + offsets, mask=mask, other=0.0)
    do = tl.load(do_ptr + off_h + offsets, mask=mask, other=0.0)
    o = tl.load(o_ptr + off_h + offsets, mask=mask, other=0.0)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)  # = rowsum(p * dp)
    tl.store(delta_ptr + head * padded + offs_m, delta)
    lse = tl.load(lse_ptr + head * padded + offs_m)
    dq = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    lo = (start_m if CAUSAL else N_CTX) // BLOCK_N * BLOCK_N  # keys before it: blocks that every row sees completely
    hi = tl.minimum(start_m + BLOCK_M, N_CTX) if CAUSAL else N_CTX
    k_ptr, v_ptr = k_ptr + off_h, v_ptr + off_h
    dq = walk_keys(
        dq, q, do, lse, delta, k_ptr, v_ptr, N_CTX, qk_scale, 0, lo, offs_m, HEAD_DIM, CAUSAL, False, BLOCK_N, STAGES
    )
    dq = walk_keys(
        dq, q, do, lse, delta, k_ptr, v_ptr, N_CTX, qk_scale, lo, hi, offs_m, HEAD_DIM, CAUSAL, True, BLOCK_N, STAGES
    )
    tl.store(dq_ptr + off_h + offsets, dq * sm_scale, mask=mask)


def query_gradient(q, k, v, o, do, lse, scale, causal):
    """dq, and delta = rowsum(o * do), in the form of `lse`, 0 beyond n. All contiguous; o and lse: `forward`'s."""
    (batch, heads, n, d), padded = q.shape, lse.shape[1]
    dq, delta = torch.empty_like(q), torch.empty_like(lse)
    if n < padded:
        delta[:, n:] = 0.0
    block_m, block_n, stages, warps = attention_common.tiles(q, LARGE, OTHERS)
    queries_kernel[(triton.cdiv(n, block_m), batch * heads)](
        q, k, v, o, do, lse, delta, dq, n, padded, scale * LOG2_E, scale, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return dq, delta
