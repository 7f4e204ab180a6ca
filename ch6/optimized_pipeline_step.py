"""A training step in a pipeline: each process goes backward as soon as it can, so few activations are kept.

Problem: in baseline_pipeline_step.py every process keeps the activations of all micro-batches.

Idea: the last process sends a micro-batch back at once. The others take in turn one forward and one backward ("1F1B"):
process r has at most p - r micro-batches that wait for their backward, and a gradient and an activation cross a link at
the same time.

    process 0    [F1][F2]    [B1][F3][B2][F4][B3]    [B4]
    process 1        [F1][B1][F2][B2][F3][B3][F4][B4]

Cost: the bytes, the products and the bubble of the baseline. Activations of p micro-batches are kept instead of m.

Predict: twice as many micro-batches make the bubble smaller. What do they do to the memory of each version?
"""

from collections import deque

import torch
import torch.distributed as dist

PARTS = 8  # micro-batches


def inputs(batch=8192, dim=4096, layers=4, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = torch.randn(ranks, layers, dim, dim, device=device)[rank] / dim**0.5
    return {"x": torch.randn(batch, dim, device=device).to(dtype), "w_stage": weights.to(dtype)}


def forward(x, layers):
    for w in layers:
        x = torch.tanh(x @ w)
    return x


def swap(peer, out, like):
    """Send `out` to a neighbour and receive something like `like`, at the same time; None: nothing. Returns it."""
    coming = None if like is None else torch.empty_like(like)
    ways = (dist.irecv, coming), (dist.isend, out)
    transfers = [dist.P2POp(way, what, peer) for way, what in ways if what is not None]
    for work in dist.batch_isend_irecv(transfers) if transfers else ():
        work.wait()
    return coming


def run(x, w_stage):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    w_stage, held, parts = w_stage.detach().requires_grad_(), deque(), x.chunk(PARTS)
    ahead = ranks - 1 - rank  # forward passes before the first backward
    coming = swap(rank - 1, None, parts[0]) if rank else None
    for i in range(len(parts) + ahead):
        y = None
        if i < len(parts):
            part = (coming if rank else parts[i]).requires_grad_(rank > 0)
            held.append((part, forward(part, w_stage)))
            y = held[-1][1].detach()
        grad = y  # of the sum of squares / 2
        if ahead:
            grad = swap(rank + 1, y, held[0][1] if i >= ahead else None)
        if i >= ahead:
            part, done = held.popleft()
            done.backward(grad)
        if rank:
            coming = swap(rank - 1, part.grad if i >= ahead else None, parts[i + 1] if i + 1 < len(parts) else None)
    return w_stage.grad
