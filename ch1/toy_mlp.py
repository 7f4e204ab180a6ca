"""A toy model for the lessons of this chapter: `layers` times (linear, ReLU), all of one width, as a torch module.

Its result is not the lesson. It stands for many small kernels in a row, each of which waits for the one before.
"""

import torch
from torch import nn


def parameters(layers, width, device):
    """Weights [out, in] and biases [out], scaled so that activations keep their size from layer to layer."""
    return {
        "w_weights": [torch.randn(width, width, device=device) * (2 / width) ** 0.5 for _ in range(layers)],
        "w_biases": [torch.randn(width, device=device) * 0.1 for _ in range(layers)],
    }


def build(w_weights, w_biases):
    """The module on these very parameters, for inference: [batch, width] -> [batch, width], two calls a layer."""
    layers = []
    for weight, bias in zip(w_weights, w_biases, strict=True):
        linear = nn.Linear(weight.shape[1], weight.shape[0], device="meta")  # its own parameters are never made
        linear.weight, linear.bias = (nn.Parameter(p, requires_grad=False) for p in (weight, bias))
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers)
