"""A referee for benchmarks of hard swish, by many lengths: each array is used three times, with the same two ends."""

import torch


def hard_swish(x):
    return x * torch.clamp(x + 3, 0, 6) / 6


def is_honest(run):
    for n in (1, 63, 65, 1000):
        x = torch.empty(n)
        for scale in (1.0, 1.0, 50.0):
            x[1:-1] = scale * torch.randn(max(n - 2, 0))
            x[0], x[-1] = 0.5, -0.5
            before = x.tolist()
            error = (run(x).double() - hard_swish(torch.tensor(before).double())).abs()
            limit = 1e-6 * (1 + torch.tensor(before).abs() ** 2)
            if not bool((error <= limit).all()) or x.tolist() != before:
                return False
    return True
