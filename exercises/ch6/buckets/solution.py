"""Average gradients of two types in two all-reduces, one for each type: a latency for every bucket.

A bucket is one flat tensor: the gradients of a type, one after the other. torch.cat copies them, all_reduce adds up the
bucket, and split and view give back each gradient's part, without another copy. A tensor has one type. torch.cat of
both types would make float32 of all, and the link would carry the bfloat16 gradients in twice their bytes.

Each gradient is divided before the sum, not after it: the sum of p gradients may be too large for a type in which
their mean fits. torch's DDP does both: buckets of one type, and the division first.
"""

import torch
import torch.distributed as dist

RANKS = 3  # with two processes, a division by 2 would always be right
SIZES = {
    "check": {"layers": 3, "n": 7}, "check/one": {"layers": 1, "n": 1}, "check/wide": {"layers": 2, "n": 65},
    "check/large": {"layers": 1, "n": 33, "scale": 1e38},  # of bfloat16 and float32 the largest are 3.4e38
    "default": {"layers": 100, "n": 128},
}  # fmt: skip


def inputs(layers=100, n=128, scale=1.0, rank=0, ranks=3, device="cuda"):
    shapes = [shape for i in range(layers) for shape in ((n, n + i % 3), (n,))]  # a weight and a bias of each layer
    types = [torch.bfloat16 if len(shape) == 2 else torch.float32 for shape in shapes]
    whole = [torch.randn(ranks, *shape, device=device).clamp(-3, 3) * scale for shape in shapes]
    return {"grads": [each[rank].to(dtype) for each, dtype in zip(whole, types, strict=True)]}


def reference(grads):
    return [[sum(every) / len(grads) for every in zip(*grads, strict=True)]] * len(grads)


def cost(grads):
    ranks = dist.get_world_size()
    return {"link_bytes": sum(2 * (ranks - 1) * grad.nbytes // ranks for grad in grads)}


def run(grads):
    means = [None] * len(grads)
    for dtype in {grad.dtype: None for grad in grads}:  # in the same order everywhere
        places = [i for i, grad in enumerate(grads) if grad.dtype == dtype]
        flat = torch.cat([grads[i].flatten() for i in places]) / dist.get_world_size()
        dist.all_reduce(flat)
        for i, part in zip(places, flat.split([grads[i].numel() for i in places]), strict=True):
            means[i] = part.view_as(grads[i])
    return means
