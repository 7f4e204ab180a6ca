"""Train a step on several processes: backward first, then all gradients are summed.

Problem: the gradients of the last layer are ready when backward has just begun. They wait until it ends, and the link
is idle meanwhile.

    device    [forward][backward]
    link                         [all gradients]

Cost: 2 (p - 1) / p times the bytes of all weights cross the link with p processes, after the computation. On GPUs the
products are in bfloat16, so 3.2 TFLOP stand beside 0.5 GB: 4 ms at 800 TFLOP/s, and 2 ms at 270 GB/s.

Predict: if the sum takes as long as backward, which ratio is possible at best?
"""

import torch
import torch.distributed as dist

RANKS = 2
SIZES = {
    "check": {"batch": 5, "dim": 33, "layers": 3},
    "check/one": {"batch": 1, "dim": 1, "layers": 1},
    "check/wide": {"batch": 3, "dim": 127, "layers": 2},
    "default": {"batch": 2048, "dim": 4096, "layers": 16},
    "cpu": {"batch": 64, "dim": 256, "layers": 4},
}


def inputs(batch=2048, dim=4096, layers=16, rank=0, ranks=2, device="cuda"):
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    weights = (torch.randn(layers, dim, dim, device=device) / dim**0.5).to(dtype)
    return {"x": torch.randn(ranks, batch, dim, device=device)[rank].to(dtype), "w_layers": list(weights.unbind())}


def forward(x, layers):
    for w in layers:
        x = torch.tanh(x @ w)
    return x.square().sum() / 2


def reference(x, w_layers):
    layers = [w.detach().requires_grad_() for w in w_layers[0]]
    sum(forward(each, layers) for each in x).backward()
    return [[w.grad for w in layers]] * len(x)


def cost(x, w_layers):
    ranks, key = dist.get_world_size(), "fp32_flops" if x.dtype == torch.float32 else "bf16_flops"
    count = sum(w.numel() for w in w_layers)
    flops = 2 * len(x) * (3 * count - w_layers[0].numel())  # the first layer needs no gradient of x
    return {"link_bytes": 2 * (ranks - 1) / ranks * x.element_size() * count, key: flops}


def run(x, w_layers):
    layers = [w.detach().requires_grad_() for w in w_layers]
    forward(x, layers).backward()
    for w in layers:
        dist.all_reduce(w.grad)
    return [w.grad for w in layers]
