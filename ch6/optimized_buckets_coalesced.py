"""Sum 200 gradients over all processes in one call that takes them all: one start, and the buffers stay where they are.

Problem: in baseline_buckets.py each gradient pays the latency of a collective.

Idea: one call starts all sums. With NCCL they become one launch, which still treats each buffer by itself; gloo copies
them into one buffer of its own.

    launch   [gradient 0][gradient 1] ... [gradient 199]    one call

Cost: the bytes of the baseline. No copy is made by hand; each buffer of 64 KiB is still cut into pieces of its own.

Predict: what is left per gradient, that one flat buffer does not pay?
"""

import torch
import torch.distributed as dist


def inputs(count=200, n=16_384, rank=0, ranks=2, device="cuda"):
    return {"grads": [torch.randn(ranks, n + i % 2, device=device)[rank].clone() for i in range(count)]}


def run(grads):
    sums = [grad.clone() for grad in grads]
    dist.all_reduce_coalesced(sums)  # torch calls it deprecated, and has nothing else that gloo can do
    return sums
