"""Attention forward and backward without n^2 values in memory: the weights are computed again, from one number a row.

Problem: `baseline_attention_backward.py` moves 6.5 GiB at its default size.
Idea: the forward pass keeps o and, for each row, lse, the logarithm of the sum by which its softmax divides. Any block
of weights is then one product away: p = exp(s - lse). And rowsum(p * dp) equals rowsum(o * do): n d values are read
instead of n^2.
Two kernels compute the gradients, each with its sums in registers (the first one is in `dq_kernel.py`):

    queries    a block of dq:        s, dp, ds @ k                     3 products of n^2 d
    keys       a block of dk, dv:    s, dp, p.T @ do, ds.T @ q         4 products of n^2 d

Cost: with the forward pass 9 products, where kept weights need 6. With 4 x 16 heads, n = 2048, d = 64, lse and
rowsum(o * do) are 1 MiB. A block of 64 keys with d = 128 holds 2 * 64 * 128 sums of 4 bytes: with 4 warps 128 registers
a thread.
Predict: at that size, causal, a product is 17 GFLOP. Take 1.45 ms for the baseline's 6.5 GiB and 0.16 ms for 9 products
(H200, datasheet). What ratio do you expect?
"""

import attention_common
import torch
import triton
import triton.language as tl
from dq_kernel import query_gradient
from forward import forward

REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.5)  # with a causal mask, gradients and errors of the first rows are much larger
STRESS = {
    "values around 100": "one weight of a row is 1: dp - rowsum(o * do) is what the rounding of two sums leaves, not 0",
    "values around 10,000": "the same", "values near -100": "the same",
}  # fmt: skip
# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (64, 64, 2, 4)}
OTHERS = {64: (32, 64, 2, 4), 128: (32, 64, 2, 8)}  # tensor cores that read their operands from registers
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v, do = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(4))
    return {"q": q, "k": k, "v": v, "do": do, "causal": causal}


@triton.jit
def walk_queries(
    dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, N_CTX, qk_scale, lo, hi, offs_n,
    HEAD_DIM: tl.constexpr, MASKED: tl.constexpr, BLOCK_M: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for start_m in tl.range(lo, hi, BLOCK_M, num_stages=STAGES):
        offs_m, offs_d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
        offsets, mask = offs_m[:, None] * HEAD_DIM + offs_d, offs_m[:, None] < N_CTX
        q = tl.load(q_ptr + offsets, mask=mask, other=0.0)
        lse, delta = tl.load(lse_ptr + offs_m), tl.load(delta_ptr + offs_m)
        qk = tl.dot(k, q.T, input_precision="ieee")  # [BLOCK_N, BLOCK_M]: transposed, p and ds can stay in registers
        p = tl.exp2(qk * qk_scale - lse[None, :])
        if MASKED:
            p = tl.where(offs_n[:, None] <= offs_m[None, :], p, 0.0)
        do = tl.load(do_ptr + offsets, mask=mask, other=0.0)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")
        dp = tl.dot(v, do.T, input_precision="ieee")
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")
    return dk, dv


@triton.jit
def keys_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, N_CTX, padded, qk_scale, sm_scale,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start_n, head = tl.program_id(0) * BLOCK_N, tl.program_id(1).to(tl.int64)
    off_h = head * N_CTX * HEAD_DIM  # 64 bits: a tensor may have more than 2^31 elements
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offsets, mask = offs_n[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM), offs_n[:, None] < N_CTX
    k = tl.load(k_ptr + off_h + offsets, mask=mask, other=0.0)
    v = tl.load(v_ptr + off_h + offsets, mask=mask, other=0.0)
    dk, dv = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32), tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    q_ptr, do_ptr = q_ptr + off_h, do_ptr + off_h
    lse_ptr, delta_ptr = lse_ptr + head * padded, delta_ptr + head * padded
    unmasked = tl.minimum(start_n + BLOCK_N, N_CTX) if CAUSAL else 0  # rows from there on see all these keys
    if CAUSAL:
        dk, dv = walk_queries(
            dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, N_CTX, qk_scale,
            start_n, unmasked, offs_n, HEAD_DIM, True, BLOCK_M, STAGES,
        )  # fmt: skip
    dk, dv = walk_queries(
        dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, N_CTX, qk_scale,
        unmasked, N_CTX, offs_n, HEAD_DIM, False, BLOCK_M, STAGES,
    )  # fmt: skip
    tl.store(dk_ptr + off_h + offsets, dk * sm_scale, mask=mask)
    tl.store(dv_ptr + off_h + offsets, dv, mask=mask)


def run(q, k, v, do, causal):
    width, (q, k, v, do) = q.shape[3], attention_common.widened(q, k, v, do)
    scale = width**-0.5
    o, lse = forward(q, k, v, scale, causal)
    dq, delta = query_gradient(q, k, v, o, do, lse, scale, causal)
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    (batch, heads, n, d), padded = q.shape, lse.shape[1]
    block_m, block_n, stages, warps = attention_common.tiles(q, LARGE, OTHERS)
    keys_kernel[(triton.cdiv(n, block_n), batch * heads)](
        q, k, v, do, lse, delta, dk, dv, n, padded, scale * LOG2_E, scale, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return tuple(each[..., :width].contiguous() for each in (dq, dk, dv))
