"""takes the rows that are not 0 for those that count, so an earlier text's rows count, too"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position], cache_v[position] = key, value
    empty = (cache_k == 0).all(1)
    weights = torch.softmax((cache_k @ q * q.shape[0] ** -0.5).masked_fill(empty, float("-inf")), 0)
    position += 1
    return weights @ cache_v
