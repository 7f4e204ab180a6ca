"""Send all tokens to their experts in one all-to-all, after a permutation that puts them in the order of their experts.

Problem: in baseline_all_to_all.py each expert pays the latency of a collective, and one process receives at a time.

Idea: sort the tokens by expert, so that what goes to one process is contiguous. One all-to-all moves everything, and
all links work at once. A second permutation puts the tokens of each expert together.

    tokens by expert    [to process 0 | to process 1]    one all-to-all

Cost: the received tokens are copied once more, at the rate of the device's memory.

Predict: what changes if one expert gets half of all tokens?
"""

import torch
import torch.distributed as dist


def inputs(experts=32, tokens=128, dim=4096, rank=0, ranks=2, device="cuda"):
    count = ranks * experts * tokens
    x = torch.randn(ranks, count, dim, device=device)[rank].clone()
    order = torch.stack([torch.randperm(count, device=device) for _ in range(ranks)])[rank].clone()
    return {"x": x, "order": order, "experts": experts}  # the token order[i] goes to expert i // tokens


def run(x, order, experts):
    ranks, dim = dist.get_world_size(), x.shape[-1]
    sent = x.index_select(0, order).view(ranks, experts, -1, dim)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    return received.transpose(0, 1).reshape(experts, -1, dim)
