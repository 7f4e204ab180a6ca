"""Push 8192 samples through an MLP in batches of 512: 16 batches, 640 calls of the GPU, each with 16x the work.

Problem: in batches of 32 the GPU waits for the CPU, which makes 10,240 calls.

Idea: a batch of 512 reads the 256 KiB of weights of a layer for 67 MFLOP instead of 4.2. Weights and calls are paid for
1/16 as often, and the product has enough rows to occupy more of the GPU's multiprocessors.

Cost: activations take 16 times the memory, and the first answer comes later, because 512 samples finish together. In
training a larger batch also means fewer updates: another training.

Predict: suppose a call takes the CPU 10 us, and the GPU computes 50 TFLOP/s. A layer is two calls (product, ReLU) and
2 * 256 * 256 FLOPs a sample. From which batch size on does the arithmetic of a layer take longer than its calls?
"""

import torch
from toy_mlp import build, parameters

CLOCK = "wall"  # launches are part of what is measured
BATCH = 512


def inputs(samples=8192, width=256, layers=20, device="cuda"):
    return {"x": torch.randn(samples, width, device=device), **parameters(layers, width, device)}


def setup(x, w_weights, w_biases):
    return {"model": build(w_weights, w_biases)}


def run(x, w_weights, w_biases, model):
    return torch.cat([model(batch) for batch in x.split(BATCH)])
