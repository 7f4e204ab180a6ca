"""Gradients of four convolutions in NCHW: neighbours in memory are pixels, a sum runs over channels 784 elements apart.

Problem: each output is a sum over 9 pixels of 256 channels. Tensor cores take channels in groups that lie side by side.
In NCHW, torch's default, those of a pixel lie H W = 784 elements apart:

    NCHW   [channel 0: pixels 0 1 2 ...] [channel 1: pixels 0 1 2 ...] ...
    NHWC   [pixel 0: channels 0 1 2 ...] [pixel 1: channels 0 1 2 ...] ...

So a library copies into its own order before a product, and back after it (cuDNN: `nchwToNhwcKernel`).
Numbers are bfloat16 on a GPU, and float32 on a CPU, where bfloat16 is slow.
Cost: an array of activations is 51 MB in bfloat16. If each product turns what it gets and gives, a layer turns 5: x and
y forward; x, the gradient of y and that of x backward. In 4 layers that are 20 * 2 * 51 MB = 2 GB, beside 11 products
of 118 GFLOP.
Predict: `optimized_channels_last.py` has all of them in NHWC from the start. How many times as fast is it at 4 TB/s and
600 TFLOP/s, and how many times at 1 TB/s and 100 TFLOP/s?
"""

import torch
import torch.nn.functional as F

SIZES = {
    "check": {"batch": 3, "channels": 7, "pixels": 9, "layers": 2},
    "check/one": {"batch": 1, "channels": 1, "pixels": 1, "layers": 1},
    "check/wide": {"batch": 2, "channels": 33, "pixels": 5, "layers": 3},
    "default": {},
    "cpu": {"batch": 4, "channels": 64, "pixels": 16, "layers": 3},
}


def inputs(batch=128, channels=256, pixels=28, layers=4, device="cuda"):
    on_cpu = torch.device(device).type == "cpu"  # where bfloat16 is slow; on a GPU cuDNN would take float32 as TF32
    kind = {"dtype": torch.float32 if on_cpu else torch.bfloat16, "device": device}
    x, dy = (torch.randn(batch, channels, pixels, pixels, **kind) for _ in range(2))  # dy: from the layers behind
    std = (2 / 9 / channels) ** 0.5  # a layer keeps the size of what it gets
    return {"x": x, "dy": dy, "weights": [torch.randn(channels, channels, 3, 3, **kind) * std for _ in range(layers)]}


def cost(x, dy, weights):
    products = 3 * len(weights) - 1  # forward, backward to the weights, and to x but for the first
    kind = "bf16_flops" if x.dtype == torch.bfloat16 else "fp32_flops"
    return {kind: products * 2 * x[:, 0].numel() * weights[0].numel()}


def run(x, dy, weights):
    leaves = [w.detach().requires_grad_() for w in weights]
    for w in leaves:
        x = F.silu(F.conv2d(x, w, padding=1))  # not ReLU: where x is near 0, its gradient depends on the rounding
    return torch.autograd.grad(x, leaves, dy)
