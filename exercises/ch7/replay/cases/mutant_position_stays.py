"""counts the position up in a new tensor, so the next call finds the old number"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position], cache_v[position] = key, value
    later = torch.arange(len(cache_k), device=q.device) > position
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(later, float("-inf")), 0)
    position = position + 1
    return weights @ cache_v
