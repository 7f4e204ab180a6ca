"""From a layer's input to its query and its row in the cache, in one kernel whose loads are all in flight: 32 a thread.

Problem: `optimized_qkv_rope_cache_fused.py` loads before it multiplies, but its compiler does not: it moves each load
down, to shortly before its use, since that takes fewer registers. `--xray qkv_rope_cache --code sass` shows the order:

    8 loads of 16 bytes in flight    2.4 programs an SM * 64 threads * 8 * 16 bytes  = 19 KiB
    all 32                           2.4 programs an SM * 64 threads * 32 * 16 bytes = 77 KiB

At 1 us (assumed) and 4.8 TB/s, each of 132 SMs needs 36 KiB in flight.
Idea: no load moves beyond a barrier. One between the loads of the weights and their use, of which nothing else needs
to wait, keeps them together.
Cost: 32 loads are 128 registers, and about 40 more for the rest. An SM has 65,536, enough for 6 programs of 64 threads.
Predict: how many times as fast as `optimized_qkv_rope_cache_fused.py` is it, if bytes in flight are the limit?
"""

import torch
import triton
import triton.language as tl

VERSUS = "fused"
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
    tl.debug_barrier()  # not for other threads: no load moves beyond it, down to its use
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
