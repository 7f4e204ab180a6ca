"""Return the input: no work at all, so that all there is to read is the clock itself.

A ratio of two such times would be one of two errors. Predict: what should a harness say instead?
"""

import torch


def inputs(n: int = 129, device: str = "cuda") -> dict[str, torch.Tensor]:
    return {"x": torch.randn(n, device=device)}


def run(x: torch.Tensor) -> torch.Tensor:
    return x
