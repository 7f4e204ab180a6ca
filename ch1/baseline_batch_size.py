"""Push 8192 samples through an MLP in batches of 32: 256 batches, 10,240 calls of the GPU, each with little to do.

Problem: every call costs the CPU several microseconds, whatever it launches. A batch of 32 reads the 256 KiB of weights
of a layer for 4.2 MFLOP (16 FLOP per byte), and it fills only a part of a large GPU.

Cost: 8192 * 20 * 2 * 256 * 256 = 21.5 GFLOP, however the samples are cut into batches: 0.43 ms at 50 TFLOP/s. At 10 us
a call, 10,240 calls take 102 ms.

Predict: `optimized_batch_size.py` makes 1/16 of the calls. Which ratio do you expect on a GPU?
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
    "cpu": {"samples": 1024, "width": 256, "layers": 20},  # an eighth of the work, for a few cores
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
