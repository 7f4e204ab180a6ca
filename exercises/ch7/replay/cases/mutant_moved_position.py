"""lets the position's tensor point to a new number, where a graph goes on with the old address"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position], cache_v[position] = key, value
    later = torch.arange(len(cache_k), device=q.device) > position
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(later, float("-inf")), 0)
    position.data = position + 1
    return weights @ cache_v
