"""Attention forward and backward without n^2 values in memory: the weights are computed again, from one number a row.

Problem: `baseline_attention_backward.py` moves 7.5 GiB at its default size.
Idea: the forward pass keeps o and, for each row, lse, the logarithm of the sum by which its softmax divides. Any block
of weights is then one product away: p = exp(s - lse). And rowsum(p * dp) equals rowsum(o * do): n d values are read
instead of n^2. Two kernels compute the gradients, each with its sums in registers:

    dq_kernel      a block of queries walks over keys:    s, dp, ds @ k                  3 products of n^2 d
    dkdv_kernel    a block of keys walks over queries:    s, p.T @ do, dp, ds.T @ q      4 products of n^2 d

A causal mask decides where a walk ends or begins. (The forward pass, in `forward.py`, is that of
`optimized_attention_skipped.py`, and writes lse in addition.)
Cost: with the forward pass 9 products, where kept weights need 6. With 4 x 16 heads, n = 2048, d = 64, lse and
rowsum(o * do) are 1 MiB. A block of 64 keys with d = 128 holds 2 * 64 * 128 sums of 4 bytes: with 8 warps 64 registers
a thread.
Predict: at that size, causal, a product is 17 GFLOP. Take 1.68 ms for the baseline's 7.5 GiB and 0.16 ms for 9 products
(H200, datasheet). What ratio do you expect?
"""

import attention_common
import torch
import triton
import triton.language as tl
from forward import LOG2_E, forward, row_products

REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.5)  # with a causal mask, gradients and errors of the first rows are much larger
STRESS = {
    "values around 100": "one weight of a row is 1: dp - rowsum(o * do) is what the rounding of two sums leaves, not 0",
    "values around 10,000": "the same", "values near -100": "the same",
}  # fmt: skip
SPILLS = "the sums of dk and dv: two instructions on capability 8.0, whose products read registers"


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v, do = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(4))
    return {"q": q, "k": k, "v": v, "do": do, "causal": causal}


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, N_CTX, padded, qk_scale, sm_scale,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    start_m = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK  # the longest first
    head = tl.program_id(1).to(tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    off_h, offs_d = head * N_CTX * HEAD_DIM, tl.arange(0, HEAD_DIM)
    offs_m = start_m + tl.arange(0, BLOCK)
    offsets, mask = offs_m[:, None] * HEAD_DIM + offs_d, offs_m[:, None] < N_CTX
    q = tl.load(q_ptr + off_h + offsets, mask=mask, other=0.0)
    do = tl.load(do_ptr + off_h + offsets, mask=mask, other=0.0)
    lse, delta = tl.load(lse_ptr + head * padded + offs_m), tl.load(delta_ptr + head * padded + offs_m)
    dq = tl.zeros((BLOCK, HEAD_DIM), tl.float32)
    for start_n in range(0, tl.minimum(start_m + BLOCK, N_CTX) if CAUSAL else N_CTX, BLOCK):
        offs_n = start_n + tl.arange(0, BLOCK)
        block, seen = off_h + offs_n[:, None] * HEAD_DIM + offs_d, offs_n[:, None] < N_CTX
        k = tl.load(k_ptr + block, mask=seen, other=0.0)
        v = tl.load(v_ptr + block, mask=seen, other=0.0)
        p = tl.exp2(tl.dot(q, k.T) * qk_scale - lse[:, None])
        p = tl.where(offs_n[None, :] <= (offs_m[:, None] if CAUSAL else N_CTX - 1), p, 0.0)
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + off_h + offsets, dq * sm_scale, mask=mask)


@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, N_CTX, padded, qk_scale, sm_scale,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    start_n, head = tl.program_id(0) * BLOCK, tl.program_id(1).to(tl.int64)
    off_h, offs_d = head * N_CTX * HEAD_DIM, tl.arange(0, HEAD_DIM)
    offs_n = start_n + tl.arange(0, BLOCK)
    offsets, mask = offs_n[:, None] * HEAD_DIM + offs_d, offs_n[:, None] < N_CTX
    k = tl.load(k_ptr + off_h + offsets, mask=mask, other=0.0)
    v = tl.load(v_ptr + off_h + offsets, mask=mask, other=0.0)
    dk, dv = tl.zeros((BLOCK, HEAD_DIM), tl.float32), tl.zeros((BLOCK, HEAD_DIM), tl.float32)
    for start_m in range(start_n if CAUSAL else 0, N_CTX, BLOCK):
        offs_m = start_m + tl.arange(0, BLOCK)
        block, seen = off_h + offs_m[:, None] * HEAD_DIM + offs_d, offs_m[:, None] < N_CTX
        q = tl.load(q_ptr + block, mask=seen, other=0.0)
        do = tl.load(do_ptr + block, mask=seen, other=0.0)
        lse, delta = tl.load(lse_ptr + head * padded + offs_m), tl.load(delta_ptr + head * padded + offs_m)
        p = tl.exp2(tl.dot(k, q.T) * qk_scale - lse[None, :])  # [keys, queries]: transposed, it can stay in registers
        p = tl.where(offs_n[:, None] <= (offs_m[None, :] if CAUSAL else N_CTX - 1), p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, do.T) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    tl.store(dk_ptr + off_h + offsets, dk * sm_scale, mask=mask)
    tl.store(dv_ptr + off_h + offsets, dv, mask=mask)


def run(q, k, v, do, causal):
    d, (q, k, v, do) = q.shape[3], attention_common.widened(q, k, v, do)  # to a power of two, with zeros
    batch, heads, n, width = q.shape
    o, lse = forward(q, k, v, d**-0.5, causal)
    delta = row_products(o, do, lse.shape[1])
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    grid, scales = (triton.cdiv(n, 64), batch * heads), (n, lse.shape[1], d**-0.5 * LOG2_E, d**-0.5)
    how = {"HEAD_DIM": width, "CAUSAL": causal, "BLOCK": 64, "num_warps": 4 if width <= 64 else 8, "num_stages": 2}
    dq_kernel[grid](q, k, v, do, lse, delta, dq, *scales, **how)
    dkdv_kernel[grid](q, k, v, do, lse, delta, dk, dv, *scales, **how)
    return tuple(x[..., :d].contiguous() for x in (dq, dk, dv))
