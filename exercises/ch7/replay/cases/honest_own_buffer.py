"""writes every answer into one buffer of its own, which the next call overwrites"""

import torch

kept = {}


def run(q, key, value, cache_k, cache_v, position):
    if q.device not in kept:
        kept[q.device] = torch.empty_like(q)
    cache_k[position], cache_v[position] = key, value
    later = torch.arange(len(cache_k), device=q.device) > position
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(later, float("-inf")), 0)
    position += 1
    return torch.matmul(weights, cache_v, out=kept[q.device])
