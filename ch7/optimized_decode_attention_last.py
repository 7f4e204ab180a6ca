"""Attention of one new token in one launch: a head's last program merges what the other 65 have written.

Problem: `optimized_decode_attention_split.py` needs a second launch for 528 KiB.
Idea: each program counts itself at its head's counter when its part is written. The one that finds all others counted
is the last, and merges the parts of the head's group:

    write o and lse; barrier    all threads of this program have written
    count, acq_rel              a program that counts later sees what was written before
    if last                     read the parts, write 8 rows of o, set the counter to 0 for the next step

The merge walks over 16 shares at a time, all 8 queries together: each thread has 16 loads of 16 bytes in flight.
Cost: one launch, 264 atomic additions. The last program of a head reads 8 * 66 parts of 256 bytes, 132 KiB, alone, in 5
rounds of loads; a second launch has 8 programs a head for that, each with one round. With 1024 keys of 2048 rows there
are 32 shares: 64 KiB in 2 rounds.
Predict: with 1024 keys, is it faster than `optimized_decode_attention_split.py`, and with 131,072?
"""

import torch
import triton
import triton.language as tl
from softmax_parts import merge, online_softmax

VERSUS = "split"
REQUIRES = {"capability": (8, 0)}
LOG2_E = 1.4426950408889634
BLOCK_N = 64
PROGRAMS = 264  # 2 for each of 132 SMs


def inputs(kv_heads=4, group=8, d=64, context=131_072, room=0, dtype="bfloat16", device="cuda"):
    q = torch.randn(kv_heads * group, d, device=device).to(getattr(torch, dtype))
    k, v = (torch.randn(kv_heads, context + room, d, device=device).to(q.dtype) for _ in range(2))
    position = torch.randint(max(context - 16, 0), context, (1,), device=device)
    return {"q": q, "k": k, "v": v, "position": position}


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, position_ptr, parts_ptr, lse_ptr, counter_ptr, o_ptr, capacity, qk_scale, GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr,
    BLOCK_S: tl.constexpr,
):  # fmt: skip
    head, share, shares = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    offs_g, offs_n, offs_d = tl.arange(0, BLOCK_G)[:, None], tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)[None, :]
    q_offsets, q_mask = (head * GROUP + offs_g) * HEAD_DIM + offs_d, (offs_g < GROUP) & (offs_d < HEAD_DIM)
    q = tl.load(q_ptr + q_offsets, mask=q_mask, other=0.0)
    length = tl.load(position_ptr) + 1
    keys = tl.cdiv(tl.cdiv(length, BLOCK_N), shares) * BLOCK_N  # of a share
    m_i, l_i = tl.full((BLOCK_G,), float("-inf"), tl.float32), tl.zeros((BLOCK_G,), tl.float32)
    acc = tl.zeros((BLOCK_G, BLOCK_D), tl.float32)
    for start in range(share * keys, min((share + 1) * keys, length), BLOCK_N):
        offsets, in_length = offs_n[:, None] * HEAD_DIM + offs_d, start + offs_n < length
        block_start, mask = (head * capacity + start) * HEAD_DIM, in_length[:, None] & (offs_d < HEAD_DIM)
        k = tl.load(k_ptr + block_start + offsets, mask=mask, other=0.0)
        qk = tl.where(in_length[None, :], tl.dot(q, k.T) * qk_scale, float("-inf"))
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, 1)
        v = tl.load(v_ptr + block_start + offsets, mask=mask, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    rows = (head * GROUP + offs_g) * shares + share
    tl.store(parts_ptr + rows * HEAD_DIM + offs_d, acc / tl.where(l_i == 0, 1.0, l_i)[:, None], mask=q_mask)
    tl.store(lse_ptr + rows, (m_i + tl.log2(l_i))[:, None], mask=offs_g < GROUP)
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr + head, 1, sem="acq_rel") == shares - 1:
        merge(parts_ptr, lse_ptr, o_ptr, head * GROUP, shares, GROUP, HEAD_DIM, BLOCK_H, BLOCK_D, BLOCK_S)
        tl.store(counter_ptr + head, 0)  # for the next step


def setup(q, k, v, position):
    return {"counter": torch.zeros(k.shape[0], dtype=torch.int32, device=k.device)}


def run(q, k, v, position, counter):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    o, (kv_heads, capacity, d) = torch.empty_like(q), k.shape
    group, shares = q.shape[0] // kv_heads, max(min(PROGRAMS // kv_heads, triton.cdiv(capacity, BLOCK_N)), 1)
    parts, lse = (torch.empty(q.shape[0], shares, width, device=q.device) for width in (d, 1))
    blocks = {"BLOCK_G": max(triton.next_power_of_2(group), 16), "BLOCK_D": max(triton.next_power_of_2(d), 16)}
    attention_kernel[(kv_heads, shares)](
        q, k, v, position, parts, lse, counter, o, capacity, d**-0.5 * LOG2_E, GROUP=group, HEAD_DIM=d, **blocks,
        BLOCK_N=BLOCK_N, BLOCK_H=triton.next_power_of_2(group), BLOCK_S=16, num_warps=4, num_stages=3,
    )  # fmt: skip
    return o
