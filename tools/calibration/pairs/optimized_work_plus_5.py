"""Take the sine of a small vector 105 times: 5 % more than the baseline, enough to be called a difference.

A repetition is the same operation on equally many numbers, so 105 of them take 105/100 of the baseline's time on any
machine. Other costs of a call, such as a first repetition with cold caches, are measured and added to both counts. The
files test the harness, they are no lesson: only for this reason may one version do more work than another. From the
second repetition on the answer is the same: sin(sin(x)).

The first repetition reads `x`, which all versions share. All others read and write buffers that each version allocates
in `setup`, again in every block. So versions of equal text share only one in a hundred of their reads.

Predict: which verdict do two versions of equal text get? How large must a difference be to be found?
"""

import torch

REPETITIONS = 105


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
    return twice[:256]  # compared after every call: comparing all would take as long as the work
