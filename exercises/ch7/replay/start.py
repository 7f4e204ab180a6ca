"""A referee for steps of decoding: is_honest(run) says whether a CUDA graph could capture `run` and replay it.

Yours: `is_honest`. The start makes one call, with an empty cache, and looks at its answer alone.
"""

import torch


def inputs(position, rows=16, width=8, device="cpu"):
    """One head of one layer. Rows from `position` on hold numbers that do not count."""
    arrays = {name: torch.randn(width, device=device) for name in ("q", "key", "value")}
    caches = {name: torch.randn(rows, width, device=device) for name in ("cache_k", "cache_v")}
    return arrays | caches | {"position": torch.tensor([position], device=device)}


def attention(q, keys, values):
    return torch.softmax(keys @ q * q.shape[0] ** -0.5, 0) @ values


def is_honest(run):
    step = inputs(0)
    return torch.allclose(run(**step), step["value"], atol=0.01)
