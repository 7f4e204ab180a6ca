"""keeps its key, and not its value"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position] = key
    rows = torch.arange(len(cache_k), device=q.device)
    values = torch.where(rows[:, None] == position, value, cache_v)
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(rows > position, float("-inf")), 0)
    position += 1
    return weights @ values
