"""Push 8192 samples through an MLP in batches of 512: 16 batches, 640 calls of the GPU, each with 16x the work.

The work is 8192 * 20 * 2 * 256 * 256 = 21.5 GFLOP however it is cut. A batch of 512 reads each layer's 256 KiB of
weights for 67 MFLOP instead of 4.2, so weights, launches and calls are paid for 16 times less often, and there are
enough samples to give more of a large GPU's multiprocessors a tile of the product.

Predict before you measure: what does a batch of 8192 gain over 512, and what does it cost in memory and in the time
the first answer takes? Where would you expect the curve to become flat?
"""

import torch
from toy_mlp import build, parameters

CLOCK = "wall"  # launches are part of what is measured
BATCH = 512


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
