"""From a layer's input to its query and its row in the cache, in one kernel: what a product gives rotates in registers.

Problem: `baseline_qkv_rope_cache.py` has 12 small kernels beside each product.
Idea: a program computes a few pairs of rows, j and j + d/2 of a head, which the rotation mixes. So it has both:

    load      4 rows j and 4 rows j + d/2 of Wqkv, 32 KiB, at once; then x, 4 KiB, which L2 has
    sums      low = Wqkv[j] @ n, high = Wqkv[j + d/2] @ n, where n = x * gain / rms(x): the division comes last
    rotate    low * cos - high * sin, high * cos + low * sin; a head of values skips this
    store     8 elements, of q or of row `position` of a cache

Each program computes rms(x) for itself: 2048 multiply-adds beside 16,384.
Cost: one launch a layer. Nothing but x, the weights and the results is moved. 320 programs of 64 threads, 2.4 on each
of 132 SMs, with 32 loads of 16 bytes a thread are 10 MiB in flight: all of a layer. They take 128 registers, and a
barrier keeps them together, as in `optimized_gemv_loads_first.py`.
Predict: what share of the measured limit does it reach with 10 MiB a layer, and with 48 MiB (`--size large/8b`)?
"""

import torch
import triton
import triton.language as tl

EPS = 1e-5


def inputs(layers=8, hidden=2048, kv_heads=4, group=8, half=32, capacity=2048, dtype="bfloat16", device="cuda"):
    d = 2 * half
    rows = {"x": (hidden,), "w_norm": (hidden,), "w_qkv": (kv_heads * (group + 2) * d, hidden)}
    rows |= dict.fromkeys(("cache_k", "cache_v"), (kv_heads, capacity, d))
    arrays = {name: torch.randn(layers, *shape, device=device) for name, shape in rows.items()}
    arrays["w_qkv"] *= hidden**-0.5
    arrays = {name: array.to(getattr(torch, dtype)) for name, array in arrays.items()}
    turns = torch.arange(capacity, device=device)[:, None] * 10_000.0 ** (-torch.arange(half, device=device) / half)
    position = torch.randint(capacity, (1,), device=device)
    return {**arrays, "w_cos": turns.cos(), "w_sin": turns.sin(), "position": position}


@triton.jit
def qkv_kernel(
    x_ptr, gain_ptr, w_ptr, k_ptr, v_ptr, cos_ptr, sin_ptr, position_ptr, q_ptr, heads, kv_heads, capacity, eps,
    HIDDEN: tl.constexpr, HALF: tl.constexpr, BLOCK_J: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # of q, then of k, then of v; 64 bits: there may be 2^31 weights
    offs_j, offs_k = tl.program_id(1) * BLOCK_J + tl.arange(0, BLOCK_J), tl.arange(0, BLOCK_K)
    in_half, in_row = offs_j < HALF, offs_k < HIDDEN
    w_ptrs, mask = w_ptr + (head * 2 * HALF + offs_j)[:, None] * HIDDEN + offs_k, in_half[:, None] & in_row
    w_low = tl.load(w_ptrs, mask=mask, other=0.0)
    w_high = tl.load(w_ptrs + HALF * HIDDEN, mask=mask, other=0.0)
    tl.debug_barrier()  # all weights are asked for before what follows
    x = tl.load(x_ptr + offs_k, mask=in_row, other=0.0).to(tl.float32)
    scaled = x * tl.load(gain_ptr + offs_k, mask=in_row, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, 0) / HIDDEN + eps)
    low = tl.sum(w_low.to(tl.float32) * scaled, 1) * rstd
    high = tl.sum(w_high.to(tl.float32) * scaled, 1) * rstd
    position = tl.load(position_ptr)
    if head < heads + kv_heads:
        cos = tl.load(cos_ptr + position * HALF + offs_j, mask=in_half)
        sin = tl.load(sin_ptr + position * HALF + offs_j, mask=in_half)
        low, high = low * cos - high * sin, high * cos + low * sin
    if head < heads:
        row_ptr = q_ptr + head * 2 * HALF
    elif head < heads + kv_heads:
        row_ptr = k_ptr + ((head - heads) * capacity + position) * 2 * HALF
    else:
        row_ptr = v_ptr + ((head - heads - kv_heads) * capacity + position) * 2 * HALF
    tl.store(row_ptr + offs_j, low, mask=in_half)
    tl.store(row_ptr + HALF + offs_j, high, mask=in_half)


def run(x, w_norm, w_qkv, cache_k, cache_v, w_cos, w_sin, position):
    x, w_norm, w_qkv, w_cos, w_sin = (array.contiguous() for array in (x, w_norm, w_qkv, w_cos, w_sin))
    (layers, kv_heads, capacity, d), hidden = cache_k.shape, x.shape[1]
    q = x.new_empty(layers, w_qkv.shape[1] // d - 2 * kv_heads, d)
    block_k = triton.next_power_of_2(hidden)
    for layer in range(layers):
        qkv_kernel[(q.shape[1] + 2 * kv_heads, triton.cdiv(d // 2, 4))](
            x[layer], w_norm[layer], w_qkv[layer], cache_k[layer], cache_v[layer], w_cos, w_sin, position, q[layer],
            q.shape[1], kv_heads, capacity, EPS, HIDDEN=hidden, HALF=d // 2, BLOCK_J=4, BLOCK_K=block_k,
            num_warps=min(max(block_k // 1024, 1), 8),
        )  # fmt: skip
    return q
