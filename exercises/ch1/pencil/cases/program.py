"""A power series of every element, term by term: with new arrays for every step, or into two arrays that are kept."""

import torch

SIZES = {
    "short": {"n": 1000, "steps": 1}, "long": {"n": 4096, "steps": 5}, "odd": {"n": 77, "steps": 3},
    "unseen": {"n": 500, "steps": 8},
}  # fmt: skip


def inputs(n, steps, device="cuda"):
    return {"x": torch.randn(n, device=device), "steps": steps}


def run(x, steps):
    total = torch.zeros_like(x)
    power = x
    for k in range(steps):
        term = power / (k + 1)
        total = total + term
        power = power * x
    return total


def in_place(x, steps):
    total = torch.zeros_like(x)
    power = x.clone()
    for k in range(steps):
        total.add_(power, alpha=1 / (k + 1))  # total = total + alpha * power
        power.mul_(x)
    return total
