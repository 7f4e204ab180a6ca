"""Attention's gradients in one kernel: scores are computed again once, not twice, and dq is added up by atomics.

Problem: the two kernels of `optimized_attention_backward_recomputed.py` compute every block of s and dp twice. dq is a
sum over keys, dk and dv are sums over queries, and a program has registers for one kind of sum.
Idea: a program keeps dk and dv, and adds what a block contributes to dq to memory, in L2.

    s, dp, p.T @ do, ds.T @ q, ds @ k    5 products of n^2 d, where two kernels need 7: 29 % fewer
    dq                                   read, added to and written n / BLOCK times, in float32

Cost: with 4 x 16 heads, n = 2048, d = 64, dq is 32 MiB in float32, and 32 blocks of 64 keys add to it (half of that if
causal): 1 GiB or 512 MiB of atomic additions. They come in any order, so that dq's last bits may differ from run to
run. dq must be set to zero before, and be rounded to 2 bytes after. The registers have to hold the part of dq as well.
Predict: is it faster than `optimized_attention_backward_recomputed.py`, or slower?
"""

import attention_common
import torch
import triton
import triton.language as tl
from forward import LOG2_E, forward, row_products

VERSUS = "recomputed"
REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.5)  # with a causal mask, gradients and errors of the first rows are much larger
STRESS = {
    "values around 100": "one weight of a row is 1: dp - rowsum(o * do) is what the rounding of two sums leaves, not 0",
    "values around 10,000": "the same", "values near -100": "the same",
}  # fmt: skip
SPILLS = "the sums of dk and dv and a block of dq: two instructions on capability 8.0, whose products read registers"


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v, do = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(4))
    return {"q": q, "k": k, "v": v, "do": do, "causal": causal}


@triton.jit
def backward_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, N_CTX, padded, qk_scale, sm_scale,
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
        p = tl.exp2(tl.dot(k, q.T) * qk_scale - lse[None, :])  # [keys, queries]: it can stay in registers, but for dq
        p = tl.where(offs_n[:, None] <= (offs_m[None, :] if CAUSAL else N_CTX - 1), p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = (p * (tl.dot(v, do.T) - delta[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk)
        tl.atomic_add(dq_ptr + block, tl.dot(k.T, ds).T * sm_scale, mask=seen, sem="relaxed")
    tl.store(dk_ptr + off_h + offsets, dk * sm_scale, mask=mask)
    tl.store(dv_ptr + off_h + offsets, dv, mask=mask)


def run(q, k, v, do, causal):
    d, (q, k, v, do) = q.shape[3], attention_common.widened(q, k, v, do)  # to a power of two, with zeros
    batch, heads, n, width = q.shape
    o, lse = forward(q, k, v, d**-0.5, causal)
    delta = row_products(o, do, lse.shape[1])
    dq, dk, dv = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(k), torch.empty_like(v)
    grid, scales = (triton.cdiv(n, 64), batch * heads), (n, lse.shape[1], d**-0.5 * LOG2_E, d**-0.5)
    how = {"HEAD_DIM": width, "CAUSAL": causal, "BLOCK": 64, "num_warps": 4 if width <= 64 else 8, "num_stages": 2}
    backward_kernel[grid](q, k, v, do, lse, delta, dq, dk, dv, *scales, **how)
    return tuple(x[..., :d].contiguous() for x in (dq.to(q.dtype), dk, dv))
