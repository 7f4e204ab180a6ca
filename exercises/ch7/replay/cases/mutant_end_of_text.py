"""tests on the host in each step whether the text has ended"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    if (value == 0).all():
        return torch.zeros_like(q)
    cache_k[position], cache_v[position] = key, value
    later = torch.arange(len(cache_k), device=q.device) > position
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(later, float("-inf")), 0)
    position += 1
    return weights @ cache_v
