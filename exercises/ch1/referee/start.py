"""A referee for benchmarks of hard swish: is_honest(run) says whether a time of `run` may be published.

Yours: `is_honest`. The start makes one call and compares loosely, so nearly every liar passes.
"""

import torch


def hard_swish(x):
    return x * torch.clamp(x + 3, 0, 6) / 6


def is_honest(run):
    x = torch.randn(1024)
    return torch.allclose(run(x), hard_swish(x), atol=0.01)
