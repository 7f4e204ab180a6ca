"""Attention of one new token, a head's keys shared by 66 programs: 264 read together, and a second launch merges.

Problem: the 4 programs of `baseline_decode_attention.py` have 128 KiB in flight.
Idea: at 1 us and 4.8 TB/s, 4.8 MB have to be in flight: 147 programs of 2 * 16 KiB. An H200 has 132 SMs, so two on
each: 264 programs, 66 for each of 4 heads. Each has 2048 of 131,072 keys (the last two of a head have none). The parts
of a softmax are merged by their log-sum-exp, lse = log(sum(exp(scores))):

    first launch     each share's o, as if there were no others, and its lse
    second launch    o = sum(share's o * exp(lse - largest)) / sum(exp(lse - largest)), a program for each of 32 queries

A share without keys has lse = -inf, and adds nothing. So the grid is that of the capacity, whatever the position.
Cost: 32 * 66 partial answers of 64 float32 are 528 KiB, written and read: less than 1 % of the keys and values. A
second launch. With 1024 keys of 2048 rows there are 32 shares, of which 16 have keys: 64 programs, a block each.
Predict: how many times as fast as the baseline is it with 131,072 keys, and with 1024?
"""

import torch
import triton
import triton.language as tl
from softmax_parts import merge, online_softmax

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
    q_ptr, k_ptr, v_ptr, position_ptr, parts_ptr, lse_ptr, capacity, qk_scale, GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
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


@triton.jit
def merge_kernel(
    parts_ptr, lse_ptr, o_ptr, shares, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_S: tl.constexpr
):
    merge(parts_ptr, lse_ptr, o_ptr, tl.program_id(0).to(tl.int64), shares, 1, HEAD_DIM, 1, BLOCK_D, BLOCK_S)


def run(q, k, v, position):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    o, (kv_heads, capacity, d) = torch.empty_like(q), k.shape
    group, shares = q.shape[0] // kv_heads, max(min(PROGRAMS // kv_heads, triton.cdiv(capacity, BLOCK_N)), 1)
    parts, lse = (torch.empty(q.shape[0], shares, width, device=q.device) for width in (d, 1))
    blocks = {"BLOCK_G": max(triton.next_power_of_2(group), 16), "BLOCK_D": max(triton.next_power_of_2(d), 16)}
    attention_kernel[(kv_heads, shares)](
        q, k, v, position, parts, lse, capacity, d**-0.5 * LOG2_E, GROUP=group, HEAD_DIM=d, **blocks, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    merge_kernel[(q.shape[0],)](parts, lse, o, shares, d, blocks["BLOCK_D"], triton.next_power_of_2(shares))
    return o
