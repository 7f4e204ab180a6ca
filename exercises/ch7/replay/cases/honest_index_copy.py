"""writes its row by index_copy_, and masks the rows behind it"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k.index_copy_(0, position, key[None])
    cache_v.index_copy_(0, position, value[None])
    scores = cache_k @ q * q.shape[0] ** -0.5
    later = torch.arange(len(cache_k), device=q.device) > position
    answer = torch.softmax(scores.masked_fill(later, float("-inf")), 0) @ cache_v
    position += 1
    return answer
