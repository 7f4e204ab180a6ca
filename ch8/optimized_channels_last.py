"""Gradients of four convolutions in NHWC (`channels_last`): a pixel's 256 channels are 512 bytes side by side.

Problem: in `baseline_channels_last.py` a library copies activations into the order of its products, and back.
Idea: `memory_format=torch.channels_last` changes strides only: shapes and indices stay [B, C, H, W]. Input and weights
are put into this order once. Convolutions, SiLU and gradients keep it, so that nothing is turned between them:

    model.to(memory_format=torch.channels_last)         once, before training
    x = x.to(memory_format=torch.channels_last)         each batch, or by the loader

Cost: the products alone. An operation without an NHWC kernel turns all of it back, silently: a profile shows copies.
The gradients of weights are turned in the end, 1 MB a layer, since the baseline's are compared in NCHW.
Predict: where does it pay less, with 64 channels or with 1024, if an array of activations has as many bytes?
"""

import torch
import torch.nn.functional as F


def inputs(batch=128, channels=256, pixels=28, layers=4, device="cuda"):
    on_cpu = torch.device(device).type == "cpu"  # where bfloat16 is slow; on a GPU cuDNN would take float32 as TF32
    kind = {"dtype": torch.float32 if on_cpu else torch.bfloat16, "device": device}
    x, dy = (torch.randn(batch, channels, pixels, pixels, **kind) for _ in range(2))  # dy: from the layers behind
    std = (2 / 9 / channels) ** 0.5  # a layer keeps the size of what it gets
    weights = [torch.randn(channels, channels, 3, 3, **kind) * std for _ in range(layers)]
    x, dy, *weights = (array.to(memory_format=torch.channels_last) for array in (x, dy, *weights))
    return {"x": x, "dy": dy, "weights": weights}


def run(x, dy, weights):
    leaves = [w.detach().requires_grad_() for w in weights]
    for w in leaves:
        x = F.silu(F.conv2d(x, w, padding=1))  # not ReLU: where x is near 0, its gradient depends on the rounding
    return [gradient.contiguous() for gradient in torch.autograd.grad(x, leaves, dy)]  # weights' are small
