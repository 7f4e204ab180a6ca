"""A step whose host asks for a number of each weight: the device is idle each time, and the products are not to blame.

The counts give three times. The host needs 8 us for each operation, the device 10 us: left alone, the host runs ahead,
and a step takes what its operations take on the device. But it asks for a number: is this gradient longer than
allowed? So it waits until the device is done, then it needs 30 us to go on and 8 us to issue the next operation. The
device is idle for all of this, 38 us for each wait. Nothing else in the table depends on the number of waits.

`torch.nn.utils.clip_grad_norm_` and `torch.where` decide on the device: no number is asked for. A profile of a GPU
shows each wait as a call that lasts until the device is idle (cudaStreamSynchronize), with a gap after it.

Below is the program that was counted.
"""

import torch
import torch.nn.functional as F

cause = "waits"
gain = (1.55, 1.9)  # times as fast, if that were mended
idle_us = 24 * (30 + 8)  # microseconds of a step in which the device has nothing to do


def inputs(batch=64, hidden=64, layers=12, device="cpu"):
    shapes = layers * [(hidden, hidden), (hidden,)]
    weights = [torch.randn(shape, device=device) * hidden**-0.5 for shape in shapes]
    return {"x": torch.randn(batch, hidden, device=device), "weights": weights}


def run(x, weights):
    weights = [w.detach().requires_grad_() for w in weights]
    y = x
    for matrix, bias in zip(weights[::2], weights[1::2], strict=True):
        y = F.gelu(F.linear(y, matrix, bias))
    (y - x).square().mean().backward()
    for w in weights:
        if w.grad.norm() > 1.0:
            w.grad.mul_(1.0 / w.grad.norm())
    torch.optim.SGD(weights, lr=0.1).step()
