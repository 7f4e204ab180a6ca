"""counts the rows in Python, from 0 on, where a graph would repeat one number"""

import torch

count = {}


def run(q, key, value, cache_k, cache_v, position):
    n = count[q.device] = count.get(q.device, -1) + 1
    n %= len(cache_k)
    cache_k[n], cache_v[n] = key, value
    position += 1
    return torch.softmax(cache_k[: n + 1] @ q * q.shape[0] ** -0.5, 0) @ cache_v[: n + 1]
