"""Copy a vector that no cache holds: the best rate of a device that only moves bytes.

The limit of memory-bound work is the fastest of a few such copies, so this one should reach it, and can exceed it only
by noise: read n * 4 bytes, write n * 4 bytes.

Predict: how far below the best copy of a few is the median of many?
"""

import torch

SIZES = {
    "check": {"n": 127},
    "default": {"n": 67_108_864},  # 256 MiB each: at least four times any L2
    "cpu": {"n": 16_777_216},  # 64 MiB each: beyond most last-level caches, and drawn in a fraction of a second
}


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
    return y[:: 1 + x.numel() // 256]  # samples: verifying all of it takes longer than copying it
