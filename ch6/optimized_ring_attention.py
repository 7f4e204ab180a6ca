"""Ring attention: each step attends to one part of the keys while the next part travels.

Problem: in baseline_ring_attention.py attention waits for all keys and values, and holds all of them.

Idea: keys and values go around a ring. In each step a process attends to the part that it has, and passes it on
meanwhile. Attention to a part comes with the sum of its weights. So two parts can be merged: each counts by its share
of the total weight.

    link         [part 1]    [part 2]
    attention    [own keys]  [part 1]  [part 2]

Cost: two parts in memory instead of p. With two processes this saves no memory: two parts are all parts, and the merge
needs answers in float32. (`copy` keeps all parts.) Each step but the first merges: this reads and writes the answer
three times, most of it in float32. At the end the answer is rounded to its type.

Predict: the work of a step grows with the square of a part's length, its bytes with the length. From which length on is
a transfer hidden?
"""

import torch
import torch.distributed as dist
from group_ops import exchange
from partial_attention import attend

REQUIRES = {"capability": (8, 0)}


def inputs(heads=8, length=4096, dim=128, rank=0, ranks=2, device="cuda"):
    shape, dtype = (ranks, 3, heads, length, dim), torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = torch.randn(shape, device=device)[rank].to(dtype)
    return {"q": q.clone(), "k": k.clone(), "v": v.clone()}


def run(q, k, v):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    part, y, log_sum = torch.stack((k, v)), None, None
    for step in range(ranks):
        coming = torch.empty_like(part)
        works = exchange(part, (rank + 1) % ranks, coming, (rank - 1) % ranks) if step < ranks - 1 else []
        y_part, log_part = attend(q, *part)
        if step:  # the part's share of each row's weight: exp(b) / (exp(a) + exp(b)) = sigmoid(b - a)
            share = torch.sigmoid(log_part - log_sum).unsqueeze(-1)
            y_part = torch.lerp(y.float(), y_part.float(), share)
            log_part = torch.logaddexp(log_sum, log_part)
        y, log_sum = y_part, log_part
        for work in works:
            work.wait()
        part = coming
    return y.to(q.dtype)
