"""copies the whole cache in each step, and writes it back to the same place"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    rows = torch.arange(len(cache_k), device=q.device)[:, None]
    cache_k.copy_(torch.where(rows == position, key, cache_k))
    cache_v.copy_(torch.where(rows == position, value, cache_v))
    scores = torch.where(rows[:, 0] <= position, cache_k @ q * q.shape[0] ** -0.5, float("-inf"))
    weights = torch.exp(scores - scores.max())
    position.add_(1)
    return weights @ cache_v / weights.sum()
