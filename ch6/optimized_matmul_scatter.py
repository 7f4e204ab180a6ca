"""Multiply and reduce-scatter in parts: the rows for another process travel while the next rows are multiplied.

Problem: in baseline_matmul_scatter.py the link waits for the whole product.

Idea: multiply the rows of the other processes first and send each part at once. The own rows come last, while the link
works. Then add what has come.

    product    [others' rows][own rows]
    link                     [others' rows]

Cost: the sum is computed by the receiver: p - 1 additions of its rows with p processes.

Predict: for which sizes does the link need longer than the product of the own rows?
"""

import torch
import torch.distributed as dist
from group_ops import exchange


def inputs(m=4096, k=4096, n=8192, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    x = torch.randn(ranks, m * ranks, k, device=device)[rank].to(dtype)
    return {"x": x, "w": torch.randn(ranks, k, n, device=device)[rank].to(dtype) / k**0.5}


def run(x, w):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    rows, works, received = x.chunk(ranks), [], []
    for step in range(1, ranks):
        to, part = (rank + step) % ranks, rows[(rank + step) % ranks] @ w
        received.append(torch.empty_like(part))
        works += exchange(part, to, received[-1], (rank - step) % ranks)
    y = rows[rank] @ w
    for work in works:
        work.wait()
    for part in received:
        y += part
    return y
