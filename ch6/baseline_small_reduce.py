"""Sum 50 small tensors over all processes, one after the other, with NCCL: 50 latencies of a collective.

Problem: in tensor parallelism each process has a part of every layer. When the model makes its next token, each layer
ends in a sum of a few KiB. The next layer needs it, so the sums cannot be packed into one buffer as in `buckets`. The
50 tensors of this pair stand for 50 layers: every version sums them one by one, in their order.

    sum 0    [start][processes find each other][64 KiB]
    sum 1                                              [start][processes find each other][64 KiB]

Cost: with p processes each one has to send 2 (p - 1) / p times the bytes. With two, that is 64 KiB: 0.16 us at
400 GB/s. Each tensor is also copied once, because NCCL's sum overwrites it.

Predict: suppose that a sum of 64 KiB takes 15 us. Which share of it is latency?
"""

import torch
import torch.distributed as dist

RANKS = 2
SIZES = {
    "check": {"count": 5, "n": 127},
    "check/one": {"count": 1, "n": 1},
    "check/wide": {"count": 7, "n": 100_003},
    "default": {"count": 50, "n": 16_384},  # 64 KiB of float32 each
    "small/1KiB": {"count": 50, "n": 256},
    "small/16KiB": {"count": 50, "n": 4096},
    "large/256KiB": {"count": 50, "n": 65_536},
    "large/1MiB": {"count": 50, "n": 262_144},
}


def inputs(count=50, n=16_384, rank=0, ranks=2, device="cuda"):
    return {"xs": [torch.randn(ranks, n, device=device)[rank].clone() for _ in range(count)]}


def reference(xs):
    sums = [sum(every) for every in zip(*xs, strict=True)]
    return [sums] * len(xs)


def cost(xs):
    ranks = dist.get_world_size()
    return {"link_bytes": 2 * (ranks - 1) / ranks * sum(x.nbytes for x in xs)}


def run(xs):
    sums = []
    for x in xs:
        total = x.clone()
        dist.all_reduce(total)
        sums.append(total)
    return sums
