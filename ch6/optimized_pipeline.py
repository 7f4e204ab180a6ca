"""A pipeline with micro-batches: a process computes one while its successor computes the one before.

Problem: in baseline_pipeline.py a stage waits for the whole batch.

Idea: the batch is cut into m micro-batches. A stage sends each one on as soon as it is ready.

    process 0    [1][2][3][4]
    process 1       [1][2][3][4]

Cost: with p stages the time is m + p - 1 steps instead of m p. Idle ("bubble"): (p - 1) / (m + p - 1) of it.

Predict: with 8 stages, how many micro-batches keep the bubble below 10 %?
"""

import torch
import torch.distributed as dist


def inputs(batch=8192, dim=4096, layers=4, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = torch.randn(ranks, layers, dim, dim, device=device)[rank] / dim**0.5
    return {"x": torch.randn(batch, dim, device=device).to(dtype), "w_stage": weights.to(dtype)}


def stage(x, layers):
    for w in layers:
        x = torch.relu(x @ w)
    return x


def run(x, w_stage):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    done, works = [], []
    for part in x.chunk(8):
        coming = torch.empty_like(part) if rank else part
        if rank:
            dist.recv(coming, rank - 1)
        done.append(stage(coming, w_stage))
        if rank < ranks - 1:
            works.append(dist.isend(done[-1], rank + 1))
    for work in works:
        work.wait()
    return torch.cat(done)
