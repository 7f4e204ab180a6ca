"""A pipeline of stages, one per process, and one batch: one process works, the others wait.

Problem: each process has the layers of its stage. The batch passes through one stage after the other, so with p
processes each one is idle for (p - 1) / p of the time.

    process 0    [whole batch]
    process 1                 [whole batch]

Cost: the activations of the batch cross each link once.

Predict: which part of the batch could process 1 already compute while process 0 still works?
"""

import torch
import torch.distributed as dist

RANKS = 2
SIZES = {
    "check": {"batch": 5, "dim": 33, "layers": 2},
    "check/one": {"batch": 1, "dim": 1, "layers": 1},
    "check/wide": {"batch": 17, "dim": 127, "layers": 1},
    "default": {"batch": 8192, "dim": 4096, "layers": 4},
}


def inputs(batch=8192, dim=4096, layers=4, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = torch.randn(ranks, layers, dim, dim, device=device)[rank] / dim**0.5
    return {"x": torch.randn(batch, dim, device=device).to(dtype), "w_stage": weights.to(dtype)}


def stage(x, layers):
    for w in layers:
        x = torch.relu(x @ w)
    return x


def reference(x, w_stage):
    answers = [x[0]]
    for layers in w_stage:
        answers.append(stage(answers[-1], layers))
    return answers[1:]  # each process returns what its stage computes


def cost(x, w_stage):
    is_last = dist.get_rank() == dist.get_world_size() - 1
    key = "fp32_flops" if x.dtype == torch.float32 else "bf16_flops"
    return {"link_bytes": 0 if is_last else x.nbytes, key: 2 * x.shape[0] * w_stage.numel()}


def run(x, w_stage):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    coming = torch.empty_like(x) if rank else x
    if rank:
        dist.recv(coming, rank - 1)
    y = stage(coming, w_stage)
    if rank < ranks - 1:
        dist.send(y, rank + 1)
    return y
