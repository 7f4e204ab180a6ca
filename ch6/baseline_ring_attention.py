"""Attention over a sequence on several processes: gather all keys and values, then attend.

Problem: each process has the queries, keys and values of a part of the sequence. Its queries need all keys and values.
They are gathered first, so every process holds all of them, and nothing is computed meanwhile. `attend` is the fused
attention of torch, which keeps no weights in memory (chapter 4).

    link         [gather k, v]
    attention                 [all keys]

Cost: a process sends its keys and values to each other process, and keeps those of all.

Predict: with 8 processes, how much more memory do the gathered keys and values need than a process's own?
"""

import torch
import torch.distributed as dist
from group_ops import all_gather
from partial_attention import attend

RANKS = 2
REQUIRES = {"capability": (8, 0)}
SIZES = {
    "check": {"heads": 2, "length": 9, "dim": 16},
    "check/one": {"heads": 1, "length": 1, "dim": 8},
    "check/wide": {"heads": 1, "length": 65, "dim": 32},
    "default": {"heads": 8, "length": 4096, "dim": 128},
    "long": {"heads": 8, "length": 32_768, "dim": 128},
}


def inputs(heads=8, length=4096, dim=128, rank=0, ranks=2, device="cuda"):
    shape, dtype = (ranks, 3, heads, length, dim), torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = torch.randn(shape, device=device)[rank].to(dtype)
    return {"q": q.clone(), "k": k.clone(), "v": v.clone()}


def reference(q, k, v):
    k, v = torch.cat(k, dim=1).mT / k[0].shape[-1] ** 0.5, torch.cat(v, dim=1)
    rows = [each.split(1024, dim=1) for each in q]  # of `long`, the weights of all rows would fill the memory
    return [torch.cat([torch.softmax(some @ k, dim=-1) @ v for some in each], dim=1) for each in rows]


def yardstick_attention(q, k, v):
    ranks = dist.get_world_size()
    return attend(q, k.repeat(1, ranks, 1), v.repeat(1, ranks, 1))[0]  # as many keys, all from here: nothing travels


def cost(q, k, v):
    ranks, key = dist.get_world_size(), "fp32_flops" if q.dtype == torch.float32 else "bf16_flops"
    return {"link_bytes": (ranks - 1) * 2 * k.nbytes, key: 4 * ranks * q.numel() * q.shape[1]}


def run(q, k, v):
    every = torch.empty(2 * dist.get_world_size(), *k.shape, device=k.device, dtype=k.dtype)
    all_gather(every, torch.stack((k, v)))
    k, v = (part.transpose(0, 1).flatten(1, 2) for part in (every[0::2], every[1::2]))
    y, _ = attend(q, k, v)
    return y
