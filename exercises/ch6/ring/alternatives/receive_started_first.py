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
    chunks = [*total.tensor_split(ranks)]
    for step in range(2 * ranks - 2):
        out, into = (rank - step) % ranks, (rank - step - 1) % ranks
        received = torch.empty_like(chunks[into])
        work = dist.irecv(received, (rank - 1) % ranks)
        dist.send(chunks[out], (rank + 1) % ranks)
        work.wait()
        chunks[into] = chunks[into] + received if step < ranks - 1 else received
    return torch.cat(chunks)
