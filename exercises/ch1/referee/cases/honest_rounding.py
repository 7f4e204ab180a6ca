"""multiplies by 1 / 6 where others divide, which changes some last digits"""

import torch


def run(x):
    return x * (torch.clamp(x + 3.0, 0.0, 6.0) * (1.0 / 6.0))
