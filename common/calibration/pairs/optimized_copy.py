"""Copy a vector that no cache holds: what a device does at best when it moves bytes and nothing else.

The limit of memory-bound work is the fastest of a few such copies, so this one should reach it, and cannot pass it by
more than noise: read n * 4 bytes, write n * 4 bytes.

Predict: how far below the best copy of a few is the median of many?
"""

import torch


def inputs(n: int = 67_108_864, device: str = "cuda") -> dict[str, torch.Tensor]:
    return {"x": torch.rand(n, device=device)}


def setup(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"y": torch.empty_like(x)}


def reference(x: torch.Tensor) -> torch.Tensor:
    return x[:: 1 + x.numel() // 256]


def cost(x: torch.Tensor) -> dict[str, int]:
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    y.copy_(x)
    return y[:: 1 + x.numel() // 256]  # samples of it: to verify all of it would take longer than to copy it
