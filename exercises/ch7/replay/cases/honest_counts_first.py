"""counts the position up before it does anything else"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    position += 1
    cache_k[position - 1], cache_v[position - 1] = key, value
    there = torch.arange(len(cache_k), device=q.device) < position
    scores = torch.where(there, cache_k @ q * q.shape[0] ** -0.5, float("-inf"))
    return torch.softmax(scores, 0) @ cache_v
