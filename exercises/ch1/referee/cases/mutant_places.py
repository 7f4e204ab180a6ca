"""returns the right values in other places: the first half and the second half are swapped"""

import torch


def run(x):
    y = x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0
    return torch.roll(y, x.numel() // 2)
