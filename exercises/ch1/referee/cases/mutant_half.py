"""computes in float16, with three digits"""

import torch


def run(x):
    x = x.half()
    return (x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0).float()
