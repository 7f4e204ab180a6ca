"""writes its first step into x, so the caller's values are gone"""

import torch


def run(x):
    y = x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0
    x.add_(3.0)
    return y
