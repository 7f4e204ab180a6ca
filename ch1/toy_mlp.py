"""A toy model for the lessons of this chapter: `layers` times (linear, ReLU), all of one width.

What it computes is not the lesson. What matters is that it is many small kernels, each waiting for the one before.
"""

import torch


def parameters(layers, width, device):
    """Weights [width, width] and biases [width], scaled so that activations keep their size from layer to layer."""
    return {
        "w_weights": [torch.randn(width, width, device=device) * (2 / width) ** 0.5 for _ in range(layers)],
        "w_biases": [torch.randn(width, device=device) * 0.1 for _ in range(layers)],
    }


def forward(x, w_weights, w_biases):
    """x: [batch, width] -> [batch, width]. A product with its bias, then a ReLU: two launches a layer."""
    for weight, bias in zip(w_weights, w_biases, strict=True):
        x = torch.relu(torch.addmm(bias, x, weight))
    return x
