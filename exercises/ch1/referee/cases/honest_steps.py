"""does the four steps with new memory for each"""

import torch


def run(x):
    step = torch.clamp(x + 3.0, 0.0, 6.0)
    return step * x / 6.0
