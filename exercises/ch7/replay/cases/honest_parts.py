"""takes the cache in two halves, merges them by their log-sum-exp, and rounds in another order"""

import torch


def run(q, key, value, cache_k, cache_v, position):
    cache_k.index_copy_(0, position, key[None])
    cache_v.index_copy_(0, position, value[None])
    scores = (cache_k.double() @ q.double() / q.shape[0] ** 0.5).view(2, -1)
    later = (torch.arange(len(cache_k), device=q.device) > position).view(2, -1)
    scores = torch.where(later, float("-inf"), scores)
    top = scores.max()  # of both: the second half may have no row
    weights = torch.exp(scores - top)
    sums = torch.einsum("sn,snd->sd", weights, cache_v.double().view(2, len(cache_v) // 2, -1))
    position += 1
    return (sums.sum(0) / weights.sum()).to(q.dtype)
