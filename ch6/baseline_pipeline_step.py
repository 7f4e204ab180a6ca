"""A training step in a pipeline: all micro-batches forward, then all backward.

Problem: backward needs what forward has computed. The first backward starts when the last micro-batch is through, so a
process keeps the activations of all m micro-batches. (This schedule is called GPipe.)

    process 0    [F1][F2][F3][F4]                [B1][B2][B3][B4]
    process 1        [F1][F2][F3][F4][B1][B2][B3][B4]

Cost: activations cross each link once forward, their gradients once backward. The time of one micro-batch is lost in
each direction for every further stage.

Predict: process 1 could begin B1 earlier. Which activations could it release then?
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
PARTS = 8  # micro-batches


def inputs(batch=8192, dim=4096, layers=4, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = torch.randn(ranks, layers, dim, dim, device=device)[rank] / dim**0.5
    return {"x": torch.randn(batch, dim, device=device).to(dtype), "w_stage": weights.to(dtype)}


def forward(x, layers):
    for w in layers:
        x = torch.tanh(x @ w)
    return x


def reference(x, w_stage):
    stages, y = [layers.detach().requires_grad_() for layers in w_stage], x[0]
    for layers in stages:
        y = forward(y, layers)
    (y.square().sum() / 2).backward()
    return [layers.grad for layers in stages]


def cost(x, w_stage):
    is_first, is_last = dist.get_rank() == 0, dist.get_rank() == dist.get_world_size() - 1
    flops = 2 * x.shape[0] * (3 * w_stage.numel() - is_first * w_stage[0].numel())  # x needs no gradient
    key = "fp32_flops" if x.dtype == torch.float32 else "bf16_flops"
    return {"link_bytes": (2 - is_first - is_last) * x.nbytes, key: flops}


def run(x, w_stage):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    w_stage, held = w_stage.detach().requires_grad_(), []
    for part in x.chunk(PARTS):
        if rank:
            part = torch.empty_like(part)
            dist.recv(part, rank - 1)
        y = forward(part.requires_grad_(rank > 0), w_stage)
        if rank < ranks - 1:
            dist.send(y.detach(), rank + 1)
        held.append((part, y))
    for part, y in held:
        grad = y.detach()  # of the sum of squares / 2
        if rank < ranks - 1:
            grad = torch.empty_like(y)
            dist.recv(grad, rank + 1)
        y.backward(grad)
        if rank:
            dist.send(part.grad, rank - 1)
    return w_stage.grad
