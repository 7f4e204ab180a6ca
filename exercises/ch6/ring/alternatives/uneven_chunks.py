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
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    total = x.clone()
    chunks = total.tensor_split(ranks)
    for step in range(ranks - 1):
        mine = chunks[(rank - step - 1) % ranks]
        received = torch.empty_like(mine)
        exchange(chunks[(rank - step) % ranks], right, received, left)
        mine += received
    for step in range(ranks - 1):
        exchange(chunks[(rank - step + 1) % ranks], right, chunks[(rank - step) % ranks], left)
    return total
