"""Adam after an all-reduce of the gradients: every process computes the whole step, and keeps all of Adam's state.

Problem: all processes have the same gradients after the all-reduce. So they compute the same step, and each one keeps
m and v, the state of Adam, for all parameters.

    all-reduce g    [sum half] [hand out half]    then p, m, v: read and written everywhere

Cost: the link carries 2 (p - 1) / p times the gradient's bytes with p processes. A step in one kernel (`adam_step`)
reads g, p, m and v and writes p, m and v: 28 bytes a parameter, of which 8 are state that is written.

Predict: half of an all-reduce hands out sums that all processes use in the same way. What could be handed out instead?
"""

import torch
import torch.distributed as dist
from adam import adam_step, formula

RANKS = 2
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/wide": {"n": 1001},
    "default": {"n": 33_554_432},  # a process's part: 128 MiB of float32
    "cpu": {"n": 262_144},
}


def inputs(n=33_554_432, rank=0, ranks=2, device="cuda"):
    p, m = (torch.randn(n * ranks, device=device) for _ in range(2))
    return {
        "g": torch.randn(ranks, n * ranks, device=device)[rank].clone(),
        "p": p,
        "m": m,
        "v": torch.rand(n * ranks, device=device) + 0.1,
    }


def reference(g, p, m, v):
    return [formula(sum(g) / len(g), p[0], m[0], v[0])[0]] * len(g)


def cost(g, p, m, v):
    ranks = dist.get_world_size()
    return {"link_bytes": 2 * (ranks - 1) / ranks * g.nbytes}


def run(g, p, m, v):
    total = g / dist.get_world_size()
    dist.all_reduce(total)
    p, m, v = adam_step(total, p, m, v)  # m and v stay here, for the next step
    return p
