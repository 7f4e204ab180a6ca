"""Take the sine of a small vector 100 times over, as the baseline does: there is no difference.

A repetition is the same operation on as many numbers, so 100 of them take 100/100 of the baseline's time,
whatever the machine; what a call costs besides, like a first repetition on cold caches, is measured and added to both
counts. These files are no lesson but a ruler to hold against the harness, and only therefore may one version do more
work than another. The answer is the same: sin(sin(x)), from the second repetition on.

The first repetition reads `x`, which all versions share. From then on everything is read from and written to buffers
that each version allocates for itself in `setup`, anew in every block: versions of equal text have nothing in common
but one in a hundred of their reads.

Predict: what will the harness call two versions of equal text? How far apart must they be before it says so?
"""

import torch

REPETITIONS = 100


def inputs(n: int = 1_048_576, device: str = "cuda") -> dict[str, torch.Tensor]:
    return {"x": torch.randn(n, device=device)}


def setup(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"once": torch.empty_like(x), "twice": torch.empty_like(x)}


def reference(x: torch.Tensor) -> torch.Tensor:
    return x[:256].sin().sin()


def run(x: torch.Tensor, once: torch.Tensor, twice: torch.Tensor) -> torch.Tensor:
    torch.sin(x, out=once)
    for _ in range(REPETITIONS - 1):
        torch.sin(once, out=twice)
    return twice[:256]  # what is compared after every call: comparing all would take as long again
