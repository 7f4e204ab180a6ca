"""Send tokens to their experts in parts of one length: each is as long as the longest, so 1.5x the bytes.

Problem: the experts of a mixture live in different processes, and each token goes to one of them. `all_to_all_single`
takes equal parts by default. So all parts are padded with zeros, to the length of the most popular expert's:

    expert 0    [tokens      ]
    expert 1    [tokens|zeros]
    ...

Cost: a process sends its tokens to the p - 1 others, (p - 1) / p of them, and the padding. Here every other expert gets
three times as many tokens as those between, so the longest part is 1.5 times the mean.

Predict: what does this version send if one expert of 64 gets half of all tokens?
"""

import torch
import torch.distributed as dist

RANKS = 2
SIZES = {
    "check": {"experts": 3, "tokens": 5, "dim": 7},
    "check/one": {"experts": 1, "tokens": 1, "dim": 1},
    "check/wide": {"experts": 2, "tokens": 9, "dim": 129},
    "default": {"experts": 32, "tokens": 128, "dim": 4096},  # a process: 32 experts, about 128 tokens to each of all
    "cpu": {"experts": 16, "tokens": 64, "dim": 64},
}


def inputs(experts=32, tokens=128, dim=4096, rank=0, ranks=2, device="cuda"):
    popular = torch.arange(experts, device=device) % 2 == 0
    counts = torch.where(popular, tokens + tokens // 2, tokens - tokens // 2).repeat(ranks)
    expert = torch.arange(ranks * experts, device=device).repeat_interleave(counts)  # of each token
    order = torch.stack([torch.randperm(len(expert), device=device) for _ in range(ranks)])[rank]
    x = torch.randn(ranks, len(expert), dim, device=device)[rank].clone()
    return {"x": x, "expert": expert[order], "experts": experts}


def reference(x, expert, experts):
    def tokens_of(number):  # those of all processes, one process after the other
        return [tokens[where == number] for tokens, where in zip(x, expert, strict=True)]

    own = [range(rank * experts[0], (rank + 1) * experts[0]) for rank in range(len(x))]
    return [torch.cat([part for number in numbers for part in tokens_of(number)]) for numbers in own]


def cost(x, expert, experts):
    ranks = dist.get_world_size()
    return {"link_bytes": (ranks - 1) / ranks * x.nbytes}


def run(x, expert, experts):
    ranks = dist.get_world_size()
    order, counts = expert.argsort(stable=True), torch.bincount(expert, minlength=ranks * experts)
    longest = counts.max()
    dist.all_reduce(longest, dist.ReduceOp.MAX)  # all processes need parts of one length
    room = torch.arange(int(longest), device=x.device)
    sent = x.new_zeros(ranks * experts, len(room), x.shape[1])
    sent[room < counts.unsqueeze(1)] = x[order]
    received, sizes = torch.empty_like(sent), torch.empty_like(counts)
    dist.all_to_all_single(received, sent)
    dist.all_to_all_single(sizes, counts)
    by_expert = received.view(ranks, experts, len(room), -1).transpose(0, 1)
    return by_expert[room < sizes.view(ranks, experts, 1).transpose(0, 1)]
