"""Return the input: no work, so a time shows only the clock itself.

A ratio of two such times would be a ratio of two errors. Predict: what should a harness report instead?
"""

import torch

SIZES = {"check": {"n": 127}, "default": {"n": 129}}


def inputs(n: int = 129, device: str = "cuda") -> dict[str, torch.Tensor]:
    return {"x": torch.randn(n, device=device)}


def run(x: torch.Tensor) -> torch.Tensor:
    return x
