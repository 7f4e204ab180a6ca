"""Send tokens to their experts, expert by expert: one gather per expert, 64 latencies.

Problem: the experts of a mixture live in different processes, and each token goes to one of them. A loop over experts
collects the tokens of one expert at a time. While one process receives, the links to the others are idle.

    expert 0    all -> process 0
    expert 1    all -> process 0
    ...

Cost: a process sends (p - 1) / p of its tokens to the p - 1 others.

Predict: suppose 64 experts, and 25 us of latency for each collective: how long at least?
"""

import torch
import torch.distributed as dist

RANKS = 2
SIZES = {
    "check": {"experts": 3, "tokens": 5, "dim": 7},
    "check/one": {"experts": 1, "tokens": 1, "dim": 1},
    "check/wide": {"experts": 2, "tokens": 9, "dim": 129},
    "default": {"experts": 32, "tokens": 128, "dim": 4096},  # a process: 32 experts, 128 tokens to each of all experts
    "cpu": {"experts": 16, "tokens": 16, "dim": 64},
}


def inputs(experts=32, tokens=128, dim=4096, rank=0, ranks=2, device="cuda"):
    count = ranks * experts * tokens
    x = torch.randn(ranks, count, dim, device=device)[rank].clone()
    order = torch.stack([torch.randperm(count, device=device) for _ in range(ranks)])[rank].clone()
    return {"x": x, "order": order, "experts": experts}  # the token order[i] goes to expert i // tokens


def reference(x, order, experts):
    ranks, dim = len(x), x[0].shape[-1]
    sent = [x.index_select(0, order).view(ranks, experts[0], -1, dim) for x, order in zip(x, order, strict=True)]
    return [torch.cat([each[rank] for each in sent], dim=1) for rank in range(ranks)]


def cost(x, order, experts):
    ranks = dist.get_world_size()
    return {"link_bytes": (ranks - 1) / ranks * x.nbytes}


def run(x, order, experts):
    ranks, dim = dist.get_world_size(), x.shape[-1]
    sent = x.index_select(0, order).view(ranks * experts, -1, dim)
    received = torch.empty(experts, ranks, sent.shape[1], dim, device=x.device, dtype=x.dtype)
    for expert, tokens in enumerate(sent):
        owner, own = divmod(expert, experts)
        dist.gather(tokens, list(received[own]) if owner == dist.get_rank() else None, dst=owner)
    return received.view(experts, -1, dim)
