"""Push 8192 samples through an MLP in batches of 32: 256 batches, 10,240 calls of the GPU, each with little to do.

The work is 8192 * 20 * 2 * 256 * 256 = 21.5 GFLOP however it is cut. A batch of 32 reads each layer's 256 KiB of
weights for 4.2 MFLOP, 16 FLOP per byte, and fills a fraction of a large GPU; every launch costs several microseconds
of CPU time, whatever it launches.

Predict before you measure: `optimized_batch_size.py` makes 1/16 of the calls. Does that give 16x? Which part of
the time does not shrink, and what is different on a CPU, where a launch is a function call?
"""

import torch
from toy_mlp import build, parameters

CLOCK = "wall"  # launches are part of what is measured
BATCH = 32
SIZES = {
    "check": {"samples": 127, "width": 129, "layers": 2},
    "check/one": {"samples": 1, "width": 31, "layers": 1},
    "check/tail": {"samples": 1025, "width": 31, "layers": 2},
    "count": {"samples": 1024, "width": 128, "layers": 5},
    "default": {"samples": 8192, "width": 256, "layers": 20},
    "cpu": {"samples": 2048, "width": 256, "layers": 20},  # a quarter of the work, for a few cores
}


def inputs(samples=8192, width=256, layers=20, device="cuda"):
    return {"x": torch.randn(samples, width, device=device), **parameters(layers, width, device)}


def cost(x, w_weights, w_biases):
    parameter_bytes = sum(w.nbytes for w in w_weights + w_biases)
    flops = sum(2 * len(x) * weight.numel() for weight in w_weights)
    return {"fp32_flops": flops, "dram_bytes": 2 * x.nbytes + parameter_bytes}  # read x and all parameters, write y


def setup(x, w_weights, w_biases):
    return {"model": build(w_weights, w_biases)}


def run(x, w_weights, w_biases, model):
    return torch.cat([model(batch) for batch in x.split(BATCH)])
