"""Gather the rows of all processes, then multiply: the tensor cores wait for the link.

Problem: in tensor parallelism each process has some rows of x and some columns of w. It needs all rows for its product.
The product begins when the last row has come.

    link       [gather x]
    product               [all rows @ w]

Cost: a process sends its rows to each of the others. The time is the sum of both parts.

Predict: which rows could be multiplied at once?
"""

import torch
import torch.distributed as dist
from group_ops import all_gather

RANKS = 2
SIZES = {
    "check": {"m": 5, "k": 33, "n": 7},
    "check/one": {"m": 1, "k": 1, "n": 1},
    "check/wide": {"m": 17, "k": 127, "n": 65},
    "default": {"m": 4096, "k": 8192, "n": 4096},
}


def inputs(m=4096, k=8192, n=4096, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    x = torch.randn(ranks, m, k, device=device)[rank].to(dtype)
    return {"x": x, "w": torch.randn(ranks, k, n, device=device)[rank].to(dtype) / k**0.5}


def reference(x, w):
    return [torch.cat(x) @ each for each in w]


def yardstick_product(x, w):
    y = torch.empty(dist.get_world_size() * len(x), w.shape[1], device=x.device, dtype=x.dtype)
    for part in y.split(len(x)):
        torch.mm(x, w, out=part)  # as many operations, on this process's rows: nothing travels
    return y


def cost(x, w):
    ranks, key = dist.get_world_size(), "fp32_flops" if x.dtype == torch.float32 else "bf16_flops"
    return {"link_bytes": (ranks - 1) * x.nbytes, key: 2 * ranks * x.numel() * w.shape[1]}


def run(x, w):
    whole = torch.empty(dist.get_world_size() * len(x), x.shape[1], device=x.device, dtype=x.dtype)
    all_gather(whole, x)
    return whole @ w
