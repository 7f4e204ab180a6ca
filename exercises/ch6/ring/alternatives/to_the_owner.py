"""Add up a vector over all processes, in a ring of sends and receives. The start returns the own vector.

Yours: `run`. Given: `inputs`, and `exchange`, which sends one tensor and receives another at the same time.
"""

import torch
import torch.distributed as dist


def inputs(n, rank=0, ranks=3, device="cuda"):
    return {"x": torch.randn(ranks, n, device=device)[rank].clone()}


def exchange(send, to, receive, source):
    """Starts both, of contiguous tensors, and waits until both have ended."""
    pair = [dist.P2POp(dist.isend, send, to), dist.P2POp(dist.irecv, receive, source)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()


def run(x):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    total = x.clone()
    chunks = total.tensor_split(ranks)
    mine, others = chunks[rank], [(rank + i) % ranks for i in range(1, ranks)]
    received = torch.empty(ranks - 1, len(mine), device=x.device)
    works = [dist.irecv(each, other) for each, other in zip(received, others, strict=True)]
    for work in works + [dist.isend(chunks[other], other) for other in others]:
        work.wait()
    mine += received.sum(0)
    works = [dist.irecv(chunks[other], other) for other in others]
    for work in works + [dist.isend(mine, other) for other in others]:
        work.wait()
    return total
