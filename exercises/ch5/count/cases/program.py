"""The geometric product in torch's operations: each product of two blades, or all entries of the table of signs."""

import torch

SIZES = {
    "2d": {"dimensions": 2, "batch": 4, "features": 32}, "3d": {"dimensions": 3, "batch": 2, "features": 16},
    "3d/odd": {"dimensions": 3, "batch": 3, "features": 5}, "unseen/4d": {"dimensions": 4, "batch": 1, "features": 2},
    "unseen/1d": {"dimensions": 1, "batch": 7, "features": 3},
}  # fmt: skip


def inputs(dimensions, batch, features, device="cpu"):
    return {name: torch.ones(2**dimensions, batch, features, device=device) for name in ("x", "y")}


def product(i, j):
    """The sign and the blade of a product of two blades. Bit a of a blade's number: axis a is in it."""
    swaps = sum((i >> shift & j).bit_count() for shift in (1, 2, 3))
    return (-1) ** swaps, i ^ j


def run(x, y):
    x, y, out = x.unbind(), y.unbind(), [None] * len(x)
    for i in range(len(x)):
        for j in range(len(y)):
            sign, k = product(i, j)
            term = x[i] * y[j]
            if out[k] is None:
                out[k] = term  # the first is that of i = 0, with a plus
            else:
                out[k] = out[k] + term if sign > 0 else out[k] - term
    return torch.stack(out)


def all_entries(x, y):
    x, y, out = x.unbind(), y.unbind(), [None] * len(x)
    for i in range(len(x)):
        for j in range(len(y)):
            sign, blade = product(i, j)
            term = x[i] * y[j]
            for k in range(len(out)):
                part = term * (sign if k == blade else 0)
                out[k] = part if out[k] is None else out[k] + part
    return torch.stack(out)
