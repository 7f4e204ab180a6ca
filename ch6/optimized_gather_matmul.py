"""Gather and multiply at the same time: own rows are multiplied while the others' rows travel.

Problem: in baseline_gather_matmul.py the product waits for the last row.

Idea: a process has its own rows from the start. It starts the exchange, multiplies its own rows, and then the rows that
have come meanwhile.

    link       [others' rows]
    product    [own rows @ w][others' rows @ w]

Cost: one product becomes p smaller ones with p processes. At best the time is the longer of both parts.

Predict: with p processes, which share of the product can hide a transfer?
"""

import torch
import torch.distributed as dist
from group_ops import exchange


def inputs(m=4096, k=8192, n=4096, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    x = torch.randn(ranks, m, k, device=device)[rank].to(dtype)
    return {"x": x, "w": torch.randn(ranks, k, n, device=device)[rank].to(dtype) / k**0.5}


def run(x, w):
    ranks, rank, m = dist.get_world_size(), dist.get_rank(), len(x)
    others = {step: torch.empty_like(x) for step in range(1, ranks)}
    works = {step: exchange(x, (rank + step) % ranks, others[step], (rank - step) % ranks) for step in others}
    y = torch.empty(ranks, m, w.shape[1], device=x.device, dtype=x.dtype)
    torch.matmul(x, w, out=y[rank])
    for step, part in others.items():
        for work in works[step]:
            work.wait()
        torch.matmul(part, w, out=y[(rank - step) % ranks])
    return y.view(ranks * m, -1)
