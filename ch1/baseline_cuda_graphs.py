"""Forward of a 20-layer MLP at batch 32, kernel by kernel: 40 calls, each costing the CPU longer than the GPU.

Problem: a layer is a product with its bias, and a ReLU. That makes 2 * 20 = 40 calls, and at least as many kernels
(cuBLAS may split a product in two: `--profile` counts them). A product is 2 * 32 * 256 * 256 = 4.2 MFLOP, less than a
microsecond of arithmetic. The GPU finishes each kernel before the CPU has issued the next one:

    CPU  [launch 1][launch 2][launch 3] ...
    GPU            [k1]      [k2]      [k3] ...     mostly idle

Cost: Python and torch need perhaps 5 to 20 us of CPU time for a call. A kernel with almost no work still keeps the GPU
busy for some microseconds, from its start to the start of the next one.

Predict: `optimized_cuda_graphs.py` queues the same kernels with one call. Suppose a call takes the CPU 15 us and a
kernel the GPU 5 us. Which ratio follows?
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
