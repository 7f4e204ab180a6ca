"""A ring all-reduce: 2 (p - 1) steps, and in each step every process sends one chunk of n / p elements to its right.

With p processes a vector has p chunks. In the first p - 1 steps sums grow on their way around the ring: what comes from
the left is added to the own chunk, and this chunk is sent in the next step. Then each process has one whole sum:

                     sends        receives and adds
    step 0           chunk r      chunk r - 1
    step 1           chunk r - 1  chunk r - 2
    ...
    step p - 2       chunk r + 2  chunk r + 1    now whole in process r

In the other p - 1 steps the whole sums go around, and replace what is there. The chunks are equally long, with zeros at
the end: so each process sends 2 (p - 1) chunks of n / p elements, rounded up. That hardly grows with p: process 0 of a
star sends p - 1 vectors, and everybody waits for its link. The price is latency: 2 (p - 1) steps one after another. For
small vectors a tree, with about 2 log2(p) steps, is faster.
"""

import torch
import torch.distributed as dist

RANKS = 3  # with two processes, left and right are the same
SIZES = {"check": {"n": 127}, "check/one": {"n": 1}, "check/even": {"n": 900}, "default": {"n": 67_108_864}}


def inputs(n, rank=0, ranks=3, device="cuda"):
    return {"x": torch.randn(ranks, n, device=device)[rank].clone()}


def reference(x):
    return [sum(x)] * len(x)


def cost(x):
    return {"link_bytes": x.nbytes}  # at least: the own numbers are needed elsewhere


def exchange(send, to, receive, source):
    """Starts both, of contiguous tensors, and waits until both have ended."""
    pair = [dist.P2POp(dist.isend, send, to), dist.P2POp(dist.irecv, receive, source)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()


def run(x):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    total = x.new_zeros(-(-len(x) // ranks) * ranks)
    total[: len(x)] = x
    chunks = total.chunk(ranks)
    for step in range(ranks - 1):
        mine = chunks[(rank - step - 1) % ranks]
        received = torch.empty_like(mine)
        exchange(chunks[(rank - step) % ranks], right, received, left)
        mine += received
    for step in range(ranks - 1):
        exchange(chunks[(rank - step + 1) % ranks], right, chunks[(rank - step) % ranks], left)
    return total[: len(x)].clone()
