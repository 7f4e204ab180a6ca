"""computes in float16"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k[position], cache_v[position] = key, value
    later = torch.arange(len(cache_k), device=q.device) > position
    scores = (cache_k.half() @ q.half() * q.shape[0] ** -0.5).masked_fill(later, float("-inf"))
    position += 1
    return (torch.softmax(scores, 0) @ cache_v.half()).float()
