"""attends to the rows behind the position, too"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position], cache_v[position] = key, value
    position += 1
    return torch.softmax(cache_k @ q * q.shape[0] ** -0.5, 0) @ cache_v
