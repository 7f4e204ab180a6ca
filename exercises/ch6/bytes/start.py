"""Count what collectives send: the bytes, and the number of sends, of the process that sends most.

Yours: the six functions at the end. The five programs are what is counted; changing them here changes nothing.
`x` is float32 [n], another one in each process; n is a multiple of the number of processes, which is a power of two.
"""

import torch
import torch.distributed as dist


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


# `ring` is the ring of section 2: p - 1 steps in which sums grow, and p - 1 in which whole sums go around. In each step
# a process sends one part of n / p numbers. (Its code is what exercise ch6/ring asks for.)


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


def star_bytes(n, ranks):
    return 0  # yours: bytes that the process that sends most sends in `star`


def ring_bytes(n, ranks):
    return 0  # yours: the same of `ring`


def ring_sends(n, ranks):
    return 0  # yours: how many sends a process of `ring` makes


def doubling_bytes(n, ranks):
    return 0  # yours: bytes that a process sends in `doubling`


def gather_bytes(n, ranks):
    return 0  # yours: the same of `gather`


def exchange_bytes(n, ranks):
    return 0  # yours: the same of `exchange`
