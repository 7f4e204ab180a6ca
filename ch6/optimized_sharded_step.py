"""Adam on a part of the parameters (ZeRO): reduce-scatter, own step, all-gather; the same bytes cross the link.

Problem: in baseline_sharded_step.py every process computes the whole step.

Idea: reduce-scatter gives each process the sum of its own part. It computes the step of this part only, and all-gather
hands out the new parameters. A process needs m and v for its own part alone.

    reduce-scatter g    [sum half]    own part of p, m, v    [hand out half]    all-gather p

Cost: two collectives instead of one, each with half of the bytes.

Predict: with 8 processes, how many bytes of m and v does one keep for a million parameters?
"""

import torch
import torch.distributed as dist
from group_ops import all_gather, reduce_scatter


def inputs(n=33_554_432, rank=0, ranks=2, device="cuda"):
    p, m = (torch.randn(n * ranks, device=device) for _ in range(2))
    return {
        "g": torch.randn(ranks, n * ranks, device=device)[rank].clone(),
        "p": p,
        "m": m,
        "v": torch.rand(n * ranks, device=device) + 0.1,
    }


def step(g, p, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 0.01 * m / (v.sqrt() + 1e-8)


def run(g, p, m, v):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    n = len(g) // ranks
    total = torch.empty_like(g[:n])
    reduce_scatter(total, g / ranks)
    own = slice(rank * n, (rank + 1) * n)
    stepped = torch.empty_like(p)
    all_gather(stepped, step(total, p[own], m[own], v[own]))
    return stepped
