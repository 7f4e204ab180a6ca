"""Forward of a 20-layer MLP at batch 32, kernel by kernel: 40 calls, each costing the CPU longer than the GPU.

A layer is a product with its bias and a ReLU: 2 * 20 = 40 calls, and at least as many kernels (cuBLAS may split a
product in two: `--profile` counts them). Python and torch need 5 to 15 us to prepare and queue a call; the product
itself is 2 * 32 * 256 * 256 = 4.2 MFLOP, well under a microsecond at 50 TFLOP/s plus a few microseconds of latency.
So the GPU waits for the CPU between kernels:

    CPU  [launch 1][launch 2][launch 3] ...
    GPU            [k1]      [k2]      [k3] ...     mostly idle

Predict before you measure: `optimized_cuda_graphs.py` queues all kernels with one call. The CPU's 40 calls are gone:
is the GPU's time per kernel then the new limit, and what ratio does that leave?
"""

import torch
from toy_mlp import build, parameters

CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"
SIZES = {
    "check": {"batch": 127, "width": 129, "layers": 3},
    "check/one": {"batch": 1, "width": 31, "layers": 1},
    "count": {"batch": 32, "width": 256, "layers": 20},
    "default": {"batch": 32, "width": 256, "layers": 20},
}


def inputs(batch=32, width=256, layers=20, device="cuda"):
    return {"x": torch.randn(batch, width, device=device), **parameters(layers, width, device)}


def cost(x, w_weights, w_biases):
    parameter_bytes = sum(w.nbytes for w in w_weights + w_biases)
    flops = sum(2 * len(x) * weight.numel() for weight in w_weights)
    return {"fp32_flops": flops, "dram_bytes": 2 * x.nbytes + parameter_bytes}  # read x and all parameters, write y


def setup(x, w_weights, w_biases):
    return {"model": build(w_weights, w_biases)}


def run(x, w_weights, w_biases, model):
    return model(x)
