"""selects the rows that count by a mask, so the host has to know how many there are"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position], cache_v[position] = key, value
    there = torch.arange(len(cache_k), device=q.device) <= position
    position += 1
    return torch.softmax(cache_k[there] @ q * q.shape[0] ** -0.5, 0) @ cache_v[there]
