"""Multiply, then reduce-scatter the product: the link waits for the tensor cores.

Problem: in tensor parallelism each process has a part of the inner dimension. So each has a product of the whole size,
and the answer is their sum, of which each process needs some rows. The sum begins when the last element is there.

    product    [x @ w]
    link               [reduce-scatter]

Cost: a process sends the rows of each other process once. The time is the sum of both parts.

Predict: which rows should be multiplied first?
"""

import torch
import torch.distributed as dist
from group_ops import reduce_scatter

RANKS = 2
SIZES = {
    "check": {"m": 5, "k": 33, "n": 7},
    "check/one": {"m": 1, "k": 1, "n": 1},
    "check/wide": {"m": 17, "k": 127, "n": 65},
    "default": {"m": 4096, "k": 4096, "n": 8192},  # m: rows of the answer that a process keeps
}


def inputs(m=4096, k=4096, n=8192, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    x = torch.randn(ranks, m * ranks, k, device=device)[rank].to(dtype)
    return {"x": x, "w": torch.randn(ranks, k, n, device=device)[rank].to(dtype) / k**0.5}


def reference(x, w):
    return list(sum(x @ w for x, w in zip(x, w, strict=True)).chunk(len(x)))


def yardstick_product(x, w):
    return (x @ w)[: len(x) // dist.get_world_size()]  # nothing travels


def cost(x, w):
    ranks, key = dist.get_world_size(), "fp32_flops" if x.dtype == torch.float32 else "bf16_flops"
    sent = (ranks - 1) * len(x) // ranks * w.shape[1] * x.element_size()
    return {"link_bytes": sent, key: 2 * x.numel() * w.shape[1]}


def run(x, w):
    y = torch.empty(len(x) // dist.get_world_size(), w.shape[1], device=x.device, dtype=x.dtype)
    reduce_scatter(y, x @ w)
    return y
