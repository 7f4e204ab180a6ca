"""Steps of a network whose gradients are clipped weight by weight: the host asks for a number of each, and waits.

In the CPU's lane calls of CUDA wait for the GPU, one for each number that Python asks for. Each is followed by a gap of
the GPU "after a synchronization", because nothing was issued ahead. Without these gaps the whole call would take what is
left: whole / (whole - gaps). `torch.nn.utils.clip_grad_norm_` decides on the GPU and asks for no number.

Below is the program of the profile.
"""

import torch
import torch.nn.functional as F

cause = "waits"
waits = None  # filled in by record.py
gain = None  # filled in by record.py


def inputs(batch=4096, hidden=1024, layers=12, device="cuda"):
    shapes = layers * [(hidden, hidden), (hidden,)]
    weights = [(torch.randn(shape, device=device) * hidden**-0.5).requires_grad_() for shape in shapes]
    optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=device != "cpu")
    return {"x": torch.randn(batch, hidden, device=device), "weights": weights, "optimizer": optimizer}


def run(x, weights, optimizer):
    y = x
    for matrix, bias in zip(weights[::2], weights[1::2], strict=True):
        y = F.gelu(F.linear(y, matrix, bias))
    (y - x).square().mean().backward()
    for w in weights:
        if w.grad.norm() > 1.0:
            w.grad.mul_(1.0 / w.grad.norm())
    optimizer.step()
    optimizer.zero_grad()
