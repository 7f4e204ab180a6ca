"""Train a step on several processes with DistributedDataParallel: gradients are summed in buckets during backward.

Problem: in optimized_overlap.py each gradient is a collective of its own. In models with many small gradients each of
them pays a latency.

Idea: DDP copies gradients into buckets of 25 MB, about in the order in which backward computes them, and sums a bucket
as soon as it is full. It divides the sums by the number of processes; here the loss is multiplied by it.

    device    [forward][backward]
    link                   [bucket 0][bucket 1]...

Cost: every gradient is copied into its bucket and back. A bucket begins later than its first gradient, and the last
bucket, which begins when backward ends, is larger than the last gradient.

Predict: with 16 gradients of 32 MiB each, what does a bucket of 25 MB save?
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def inputs(batch=2048, dim=4096, layers=16, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = (torch.randn(layers, dim, dim, device=device) / dim**0.5).to(dtype)
    return {"x": torch.randn(ranks, batch, dim, device=device)[rank].to(dtype), "w_layers": list(weights.unbind())}


def forward(x, layers):
    for w in layers:
        x = torch.tanh(x @ w)
    return x.square().sum() / 2


class Layers(torch.nn.Module):
    def __init__(self, w_layers):
        super().__init__()
        self.layers = torch.nn.ParameterList(w.clone() for w in w_layers)

    def forward(self, x):
        return forward(x, self.layers)


def setup(x, w_layers):
    return {"model": DistributedDataParallel(Layers(w_layers))}


def run(x, w_layers, model):
    model.zero_grad()
    (model(x) * dist.get_world_size()).backward()
    return [w.grad for w in model.module.layers]
