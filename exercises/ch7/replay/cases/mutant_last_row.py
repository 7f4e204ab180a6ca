"""writes no row where the cache is nearly full: it keeps the last one free"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    place = position.clamp(max=len(cache_k) - 2)
    cache_k[place], cache_v[place] = key, value
    later = torch.arange(len(cache_k), device=q.device) > place
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(later, float("-inf")), 0)
    position += 1
    return weights @ cache_v
