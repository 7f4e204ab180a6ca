"""Ring attention: each step attends to one part of the keys while the next part travels.

Problem: in baseline_ring_attention.py attention waits for all keys and values, and holds all of them.

Idea: keys and values go around a ring. In each step a process attends to the part that it has, and passes it on
meanwhile. The softmax is computed in parts: a running maximum and a running sum correct the earlier parts.

    link         [part 1]    [part 2]
    attention    [own keys]  [part 1]  [part 2]

Cost: two parts in memory instead of p. Each step rescales the sums once.

Predict: the work of a step grows with the square of a part's length, its bytes with the length. From which length on is
a transfer hidden?
"""

import torch
import torch.distributed as dist
from group_ops import exchange


def inputs(heads=8, length=4096, dim=128, rank=0, ranks=2, device="cuda"):
    shape, dtype = (ranks, 3, heads, length, dim), torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = torch.randn(shape, device=device)[rank].to(dtype)
    return {"q": q.clone(), "k": k.clone(), "v": v.clone()}


def reference(q, k, v):
    k, v = torch.cat(k, dim=1), torch.cat(v, dim=1)
    return [torch.softmax(each @ k.mT / each.shape[-1] ** 0.5, dim=-1) @ v for each in q]


def cost(q, k, v):
    ranks, key = dist.get_world_size(), "fp32_flops" if q.dtype == torch.float32 else "bf16_flops"
    return {"link_bytes": (ranks - 1) * 2 * k.nbytes, key: 4 * ranks * q.numel() * q.shape[1]}


def run(q, k, v):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    part, most, total, y = torch.stack((k, v)), None, 0.0, 0.0
    for step in range(ranks):
        coming = torch.empty_like(part)
        works = exchange(part, (rank + 1) % ranks, coming, (rank - 1) % ranks) if step < ranks - 1 else []
        scores = (q @ part[0].mT).float() / q.shape[-1] ** 0.5
        highest = scores.amax(dim=-1, keepdim=True)
        highest = highest if most is None else torch.maximum(most, highest)
        earlier = 0.0 if most is None else torch.exp(most - highest)  # corrects the earlier parts
        weights, most = torch.exp(scores - highest), highest
        total = total * earlier + weights.sum(dim=-1, keepdim=True)
        y = y * earlier + (weights.to(q.dtype) @ part[1]).float()
        for work in works:
            work.wait()
        part = coming
    return (y / total).to(q.dtype)
