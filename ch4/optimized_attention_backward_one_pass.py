"""Attention backward in one kernel: scores are computed again once, not twice, and dq is added up in memory by atomics.

Problem: the two kernels of `optimized_attention_backward.py` compute every block of s and dp twice. dq is a sum over
keys, dk and dv are sums over queries, and a program has registers for one kind of sum.
Idea: a program keeps dk and dv, and adds what a block contributes to dq to memory, in L2.

    s, dp, p.T @ do, ds.T @ q, ds @ k    5 products of n^2 d, where two kernels need 7: 29 % fewer
    dq                                   read, added to and written n / BLOCK_N times, in float32

Cost: with 4 x 16 heads, n = 2048, d = 64, dq is 32 MiB in float32, and 32 blocks of 64 keys add to it (half of that if
causal): 1 GiB or 512 MiB of atomic additions. They come in any order, so that dq's last bits may differ from run to
run. dq must be set to zero before, and be rounded to 2 bytes after. The registers have to hold the part of dq as well.
Predict: is it faster than `optimized_attention_backward.py`, or slower?
"""

import attention_common
import torch
import triton
import triton.language as tl
from forward import forward, row_products

VERSUS = ""
REQUIRES = {"capability": (8, 0)}
TOLERANCE = (0.1, 0.5)  # with a causal mask, gradients and errors of the first rows are much larger
STRESS = {
    "values around 100": "one weight of a row is 1: dp - rowsum(o * do) is what the rounding of two sums leaves, not 0",
    "values around 10,000": "the same", "values near -100": "the same",
}  # fmt: skip
SPILLS = "the sums of dk and dv, and a block of dq beside them: some of d = 128, and two on capability 10.0"
# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (64, 128, 3, 8)}
OTHERS = {64: (32, 64, 2, 4), 128: (32, 64, 2, 8)}  # tensor cores that read their operands from registers
LOG2_E = 1.4426950408889634


def inputs(batch=4, heads=32, n=4096, d=64, causal=True, dtype="bfloat16", device="cuda"):
    q, k, v, do = (torch.randn(batch, heads, n, d, device=device).to(getattr(torch, dtype)) for _ in range(4))
    return {"q": q, "k": k, "v": v, "do": do, "causal": causal}


@triton.jit
def walk_queries(
    dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, N_CTX, qk_scale, sm_scale, lo, hi, offs_n,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, BLOCK_M: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for start_m in tl.range(lo, hi, BLOCK_M, num_stages=STAGES):
        offs_m, offs_d = start_m + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
        offsets, mask = offs_m[:, None] * HEAD_DIM + offs_d, offs_m[:, None] < N_CTX
        q = tl.load(q_ptr + offsets, mask=mask, other=0.0)
        lse, delta = tl.load(lse_ptr + offs_m), tl.load(delta_ptr + offs_m)
        qk = tl.dot(k, q.T, input_precision="ieee")  # [BLOCK_N, BLOCK_M]: p and ds can stay in registers, but for dq
        p = tl.exp2(qk * qk_scale - lse[None, :])
        if MASKED:
            p = tl.where(offs_n[:, None] <= offs_m[None, :] if CAUSAL else offs_n[:, None] < N_CTX, p, 0.0)
        do = tl.load(do_ptr + offsets, mask=mask, other=0.0)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")
        dp = tl.dot(v, do.T, input_precision="ieee")
        ds = (p * (dp - delta[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk, input_precision="ieee")
        dq = tl.dot(k.T, ds, input_precision="ieee").T * sm_scale
        tl.atomic_add(dq_ptr + offsets, dq, mask=mask, sem="relaxed")
    return dk, dv


@triton.jit
def keys_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, N_CTX, padded, qk_scale, sm_scale,
    HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start_n, head = tl.program_id(0) * BLOCK_N, tl.program_id(1).to(tl.int64)
    off_h = head * N_CTX * HEAD_DIM  # 64 bits: a tensor may have more than 2^31 elements
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offsets, mask = offs_n[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM), offs_n[:, None] < N_CTX
    k = tl.load(k_ptr + off_h + offsets, mask=mask, other=0.0)
    v = tl.load(v_ptr + off_h + offsets, mask=mask, other=0.0)
    dk, dv = tl.zeros((BLOCK_N, HEAD_DIM), tl.float32), tl.zeros((BLOCK_N, HEAD_DIM), tl.float32)
    q_ptr, do_ptr, dq_ptr = q_ptr + off_h, do_ptr + off_h, dq_ptr + off_h
    lse_ptr, delta_ptr = lse_ptr + head * padded, delta_ptr + head * padded
    # Rows from `unmasked` on see all these keys; of keys beyond n, with scores of 0, exp(0 - lse) may be infinite
    unmasked = tl.minimum(start_n + BLOCK_N, N_CTX) if CAUSAL else tl.where(start_n + BLOCK_N > N_CTX, N_CTX, 0)
    dk, dv = walk_queries(
        dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, N_CTX, qk_scale, sm_scale,
        start_n if CAUSAL else 0, unmasked, offs_n, HEAD_DIM, CAUSAL, True, BLOCK_M, STAGES,
    )  # fmt: skip
    dk, dv = walk_queries(
        dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, N_CTX, qk_scale, sm_scale,
        unmasked, N_CTX, offs_n, HEAD_DIM, CAUSAL, False, BLOCK_M, STAGES,
    )  # fmt: skip
    tl.store(dk_ptr + off_h + offsets, dk * sm_scale, mask=mask)
    tl.store(dv_ptr + off_h + offsets, dv, mask=mask)


def run(q, k, v, do, causal):
    width, (q, k, v, do) = q.shape[3], attention_common.widened(q, k, v, do)
    scale = width**-0.5
    o, lse = forward(q, k, v, scale, causal)
    (batch, heads, n, d), padded = q.shape, lse.shape[1]
    dq, dk, dv = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(k), torch.empty_like(v)
    delta = row_products(o, do, padded)
    block_m, block_n, stages, warps = attention_common.tiles(q, LARGE, OTHERS)
    keys_kernel[(triton.cdiv(n, block_n), batch * heads)](
        q, k, v, do, lse, delta, dq, dk, dv, n, padded, scale * LOG2_E, scale, HEAD_DIM=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return tuple(each[..., :width].contiguous() for each in (dq.to(q.dtype), dk, dv))
