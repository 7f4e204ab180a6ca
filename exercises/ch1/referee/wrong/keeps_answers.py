"""A referee for benchmarks of hard swish that makes all calls first, and compares all answers afterwards."""

import torch


def hard_swish(x):
    return x * torch.clamp(x + 3, 0, 6) / 6


def is_honest(run):
    arrays = [torch.randn(1000), torch.randn(1000), 100 * torch.randn(1000)]
    answers = [run(x) for x in arrays]
    return all(torch.allclose(y, hard_swish(x), rtol=1e-5) for x, y in zip(arrays, answers, strict=True))
