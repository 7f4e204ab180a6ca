"""Five collectives from sends and receives: three all-reduces, an all-gather, an all-to-all."""

import torch
import torch.distributed as dist

SIZES = {"two": {"n": 24, "ranks": 2}, "four": {"n": 1000, "ranks": 4}, "unseen": {"n": 64, "ranks": 8}}


def inputs(n, rank, ranks, device="cuda"):
    return {"x": torch.randn(ranks, n, device=device)[rank].clone()}


def both(send, to, receive, source):
    """Sends and receives at the same time."""
    pair = [dist.P2POp(dist.isend, send, to), dist.P2POp(dist.irecv, receive, source)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()


def star(x):
    ranks, rank, total = dist.get_world_size(), dist.get_rank(), x.clone()
    if rank:
        dist.send(x, 0)
        dist.recv(total, 0)
        return total
    received = torch.empty_like(x)
    for other in range(1, ranks):
        dist.recv(received, other)
        total += received
    for other in range(1, ranks):
        dist.send(total, other)
    return total


def ring(x):
    ranks, rank, total = dist.get_world_size(), dist.get_rank(), x.clone()
    right, left, chunks = (rank + 1) % ranks, (rank - 1) % ranks, total.chunk(ranks)
    for step in range(ranks - 1):
        received = torch.empty_like(chunks[0])
        both(chunks[(rank - step) % ranks], right, received, left)
        chunks[(rank - step - 1) % ranks].add_(received)
    for step in range(ranks - 1):
        both(chunks[(rank - step + 1) % ranks], right, chunks[(rank - step) % ranks], left)
    return total


def doubling(x):
    total, distance = x.clone(), 1
    while distance < dist.get_world_size():
        received, partner = torch.empty_like(x), dist.get_rank() ^ distance
        both(total, partner, received, partner)
        total += received
        distance *= 2
    return total


def gather(x):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    every = x.repeat(ranks, 1)
    for step in range(ranks - 1):
        both(every[(rank - step) % ranks], (rank + 1) % ranks, every[(rank - step - 1) % ranks], (rank - 1) % ranks)
    return every


def exchange(x):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    parts, received = x.chunk(ranks), x.clone().chunk(ranks)
    for step in range(1, ranks):
        to, source = (rank + step) % ranks, (rank - step) % ranks
        both(parts[to], to, received[source], source)
    return torch.cat(received)
