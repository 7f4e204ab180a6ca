"""Attention's gradient of the queries: a program keeps a block of dq and walks over the keys, 3 products a block."""

import attending
import torch
import triton
import triton.language as tl

# head dimensions up to 64 and 128 -> BLOCK_M, BLOCK_N, STAGES, WARPS, with 227 KiB of shared memory a block (9.0, 10.0)
LARGE = {64: (64, 64, 3, 4), 128: (128, 64, 3, 8)}
OTHERS = {64: (64, 32, 2, 4), 128: (64, 32, 2, 8)}  # tensor cores that take all they multiply from registers
LOG2_E = 1.4426950408889634


@triton.jit
def walk_keys(
    dq, q, do, lse, delta, k_ptr, v_ptr, n, scale, begin, end, row,
    D: tl.constexpr, CAUSAL: tl.constexpr, MASKED: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for first in tl.range(begin, end, BLOCK_N, num_stages=STAGES):
        key, lane = first + tl.arange(0, BLOCK_N), tl.arange(0, D)
        tile, inside = key[:, None] * D + lane, key < n
        k = tl.load(k_ptr + tile, mask=inside[:, None] if MASKED else None)
        v = tl.load(v_ptr + tile, mask=inside[:, None] if MASKED else None)
        s = tl.dot(q, k.T, input_precision="ieee")
        dp = tl.dot(do, v.T, input_precision="ieee")
        p = tl.exp2(s * scale - lse[:, None])
        if MASKED:
            p = tl.where(key <= row[:, None] if CAUSAL else inside[None, :], p, 0.0)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(q.dtype), k, dq, input_precision="ieee")
    return dq


@triton.jit
def queries_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, n, padded, scale, back,
    D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M  # the longest first
    head = tl.program_id(1).to(tl.int64)  # 64 bits: a tensor may have more than 2^31 elements
    at = head * n * D
    row = start + tl.arange(0, BLOCK_M)
    tile, inside = row[:, None] * D + tl.arange(0, D), row[:, None] < n
    q = tl.load(q_ptr + at + tile, mask=inside, other=0.0)
    do = tl.load(do_ptr + at + tile, mask=inside, other=0.0)
    o = tl.load(o_ptr + at + tile, mask=inside, other=0.0)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)  # = rowsum(p * dp)
    tl.store(delta_ptr + head * padded + row, delta)
    lse = tl.load(lse_ptr + head * padded + row)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    whole = (start if CAUSAL else n) // BLOCK_N * BLOCK_N  # keys before it: in blocks that every row sees all of
    last = tl.minimum(start + BLOCK_M, n) if CAUSAL else n
    k_ptr, v_ptr = k_ptr + at, v_ptr + at
    dq = walk_keys(dq, q, do, lse, delta, k_ptr, v_ptr, n, scale, 0, whole, row, D, CAUSAL, False, BLOCK_N, STAGES)
    dq = walk_keys(dq, q, do, lse, delta, k_ptr, v_ptr, n, scale, whole, last, row, D, CAUSAL, True, BLOCK_N, STAGES)
    tl.store(dq_ptr + at + tile, dq * back, mask=inside)


def query_gradient(q, k, v, o, do, lse, scale, causal):
    """dq, and delta = rowsum(o * do), in the form of `lse`, 0 beyond n. All contiguous; o and lse: `forward`'s."""
    (batch, heads, n, d), padded = q.shape, lse.shape[1]
    dq, delta = torch.empty_like(q), torch.empty_like(lse)
    block_m, block_n, stages, warps = attending.tiles(q, LARGE, OTHERS)
    queries_kernel[(padded // block_m, batch * heads)](
        q, k, v, o, do, lse, delta, dq, n, padded, scale * LOG2_E, scale, D=d, CAUSAL=causal,
        BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
    )  # fmt: skip
    return dq, delta
