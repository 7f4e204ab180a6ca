"""takes the length to the host by .item(), and computes with so many rows"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    n = position.item()
    cache_k[n], cache_v[n] = key, value
    position += 1
    return torch.softmax(cache_k[: n + 1] @ q * q.shape[0] ** -0.5, 0) @ cache_v[: n + 1]
