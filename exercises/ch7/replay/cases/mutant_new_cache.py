"""puts its row into a copy of the cache, so the next call does not find it"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    rows = torch.arange(len(cache_k), device=q.device)
    cache_k = torch.where(rows[:, None] == position, key, cache_k)
    cache_v = torch.where(rows[:, None] == position, value, cache_v)
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(rows > position, float("-inf")), 0)
    position += 1
    return weights @ cache_v
