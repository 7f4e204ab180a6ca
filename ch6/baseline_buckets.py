"""Sum 200 gradients over all processes, one all-reduce each: 200 times the latency of a collective.

Problem: an all-reduce costs a fixed time before its first byte moves: the host starts it, and the processes wait for
each other. At 64 KiB a gradient this latency is nearly all of the time.

    all-reduce of gradient 0    [latency][bytes]
    all-reduce of gradient 1                    [latency][bytes]
    ...                                                         200 times

Cost: with p processes each one has to send 2 (p - 1) / p times the bytes: half of them to sum, half to hand out the
sums. 200 gradients of 64 KiB are 12.5 MiB; at 400 GB/s that takes 0.03 ms.

Predict: suppose a latency of 25 us: how long do 200 all-reduces take? What part of it are the bytes?
"""

import torch
import torch.distributed as dist

RANKS = 2
SIZES = {
    "check": {"count": 5, "n": 127},
    "check/one": {"count": 1, "n": 1},
    "check/wide": {"count": 3, "n": 1001},
    "default": {"count": 200, "n": 16_384},  # 64 KiB of float32 each
    "cpu": {"count": 40, "n": 1_024},
}


def inputs(count=200, n=16_384, rank=0, ranks=2, device="cuda"):
    return {"grads": [torch.randn(ranks, n + i % 2, device=device)[rank].clone() for i in range(count)]}


def reference(grads):
    sums = [sum(every) for every in zip(*grads, strict=True)]
    return [sums] * len(grads)


def cost(grads):
    ranks = dist.get_world_size()
    return {"link_bytes": 2 * (ranks - 1) / ranks * sum(grad.nbytes for grad in grads)}


def run(grads):
    sums = [grad.clone() for grad in grads]
    for each in sums:
        dist.all_reduce(each)
    return sums
