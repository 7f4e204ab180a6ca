"""Attention of one new token, a program for each key-value head: 4 programs walk over 128 MiB, and 128 SMs are idle.

Problem: o = softmax(q @ k.T / sqrt(d)) @ v, where each of 32 heads has a single query. Eight of them share a key-value
head (grouped-query attention), so that its keys and values are read once for eight rows of `tl.dot`, which takes 16
(eight are zeros). `position` is where the new token's own key lies: rows up to it count. It is read on the device, so
that a CUDA graph serves every step. Memory is the limit:

    k and v     2 * 4 heads * 131,072 rows * 64 * 2 bytes = 128 MiB, once
    products    4 * 8 rows for each pair of elements      = 8 FLOP for each byte, where the ridge point is 206 (H200)

Cost: a program walks over its head in blocks of 64 keys and 64 values, 16 KiB, two of which are on their way while it
works on a third. If a block takes 1 us to arrive (assumed), the programs receive at most

    4 programs * 2 * 16 KiB / 1 us = 0.13 TB/s, of the 4.8 TB/s in an H200's datasheet

Predict: `optimized_decode_attention_split.py` lets several programs share a head's keys. How many programs does this
memory need in flight, and how many times as fast is it at most?
"""

import torch
import triton
import triton.language as tl
from softmax_parts import online_softmax
from torch.nn.functional import scaled_dot_product_attention

REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"kv_heads": 2, "group": 3, "d": 16, "context": 127, "room": 3, "dtype": "float16"},
    "check/one": {"kv_heads": 3, "group": 1, "d": 24, "context": 1, "room": 2, "dtype": "float16"},
    "check/group": {"kv_heads": 1, "group": 20, "d": 40, "context": 129, "room": 130, "dtype": "float16"},
    "check/shares": {"kv_heads": 7, "group": 1, "d": 32, "context": 2500, "dtype": "float16"},
    "count": {"context": 4096},
    "default": {}, "context/1024": {"context": 1024, "room": 1024},
}  # fmt: skip
LOG2_E = 1.4426950408889634
BLOCK_N = 64


def inputs(kv_heads=4, group=8, d=64, context=131_072, room=0, dtype="bfloat16", device="cuda"):
    q = torch.randn(kv_heads * group, d, device=device).to(getattr(torch, dtype))
    k, v = (torch.randn(kv_heads, context + room, d, device=device).to(q.dtype) for _ in range(2))
    position = torch.randint(max(context - 16, 0), context, (1,), device=device)
    return {"q": q, "k": k, "v": v, "position": position}


def reference(q, k, v, position):  # the heads of a group as rows of one product
    scores = (q * q.shape[1] ** -0.5).view(k.shape[0], -1, q.shape[1]) @ k.mT  # [kv_heads, group, capacity]
    scores.masked_fill_(torch.arange(k.shape[1], device=k.device) > position, float("-inf"))
    return (torch.softmax(scores, -1) @ v).view_as(q)


def library(q, k, v, position):  # torch's choice: cuDNN's kernel on an H200, the memory-efficient one on 8.x
    mask = torch.arange(k.shape[1], device=k.device) <= position  # which FlashAttention does not take
    q, k, v = q[None, :, None], k[None], v[None]
    return scaled_dot_product_attention(q, k, v, attn_mask=mask.view(1, 1, 1, -1), enable_gqa=True)[0, :, 0]


def cost(q, k, v, position):
    return {"dram_read_bytes": 2 * (int(position) + 1) * k[:, 0].nbytes + 2 * q.nbytes}  # the rows that count; q, o


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, position_ptr, o_ptr, capacity, qk_scale, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_G: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)  # 64 bits: a cache may have more than 2^31 elements
    offs_g, offs_n, offs_d = tl.arange(0, BLOCK_G)[:, None], tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)[None, :]
    q_offsets, q_mask = (head * GROUP + offs_g) * HEAD_DIM + offs_d, (offs_g < GROUP) & (offs_d < HEAD_DIM)
    q = tl.load(q_ptr + q_offsets, mask=q_mask, other=0.0)
    length = tl.load(position_ptr) + 1
    m_i, l_i = tl.full((BLOCK_G,), float("-inf"), tl.float32), tl.zeros((BLOCK_G,), tl.float32)
    acc = tl.zeros((BLOCK_G, BLOCK_D), tl.float32)
    for start in range(0, length, BLOCK_N):
        offsets, in_length = offs_n[:, None] * HEAD_DIM + offs_d, start + offs_n < length
        block_start, mask = (head * capacity + start) * HEAD_DIM, in_length[:, None] & (offs_d < HEAD_DIM)
        k = tl.load(k_ptr + block_start + offsets, mask=mask, other=0.0)
        qk = tl.where(in_length[None, :], tl.dot(q, k.T) * qk_scale, float("-inf"))
        p, alpha, m_i, l_i = online_softmax(qk, m_i, l_i, 1)
        v = tl.load(v_ptr + block_start + offsets, mask=mask, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    tl.store(o_ptr + q_offsets, acc / l_i[:, None], mask=q_mask)


def run(q, k, v, position):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    o, (kv_heads, capacity, d), group = torch.empty_like(q), k.shape, len(q) // len(k)
    blocks = {"BLOCK_G": max(triton.next_power_of_2(group), 16), "BLOCK_D": max(triton.next_power_of_2(d), 16)}
    attention_kernel[(kv_heads,)](
        q, k, v, position, o, capacity, d**-0.5 * LOG2_E, GROUP=group, HEAD_DIM=d, **blocks, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    return o
