"""The rival: the plain model with a static cache, by torch.compile, captured in one CUDA graph.

torch.compile(mode="reduce-overhead") would capture it, too, but does not where a function writes to its inputs, as this
one does to its cache.
"""

import model
import torch
from compiled import compiled

_captured = {}  # of one set of addresses: weights and cache keep theirs from token to token


def forward(token, position, cache_k, cache_v, w_cos, w_sin, weights):
    seen = torch.arange(cache_k.shape[2], device=position.device) <= position

    def attend(layer, q, key, value):
        cache_k[layer].index_copy_(1, position, key[:, None])
        cache_v[layer].index_copy_(1, position, value[:, None])
        return model.attention(q, cache_k[layer], cache_v[layer], seen)

    return model.step(attend, token, w_cos[position], w_sin[position], cache_k.shape[3], cache_k.dtype, **weights)


def step(token, position, cache_k, cache_v, w_cos, w_sin, weights):
    """The logits [V]; the same answer as every version's."""
    if not token.is_cuda:
        return forward(token, position, cache_k, cache_v, w_cos, w_sin, weights)
    addresses = tuple(t.data_ptr() for t in (cache_k, cache_v, w_cos, w_sin, *weights.values()))
    if addresses not in _captured:
        _captured.clear()  # a graph keeps its memory
        _captured[addresses] = capture(token.clone(), position.clone(), cache_k, cache_v, w_cos, w_sin, weights)
    kept_token, kept_position, graph, logits = _captured[addresses]
    kept_token.copy_(token)
    kept_position.copy_(position)
    graph.replay()
    return logits


def capture(token, position, cache_k, cache_v, *others):
    function, rows = compiled(forward, cache_k), [cache[:, :, position].clone() for cache in (cache_k, cache_v)]
    function(token, position, cache_k, cache_v, *others)  # compiles: that may not happen during a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = function(token, position, cache_k, cache_v, *others)
    for cache, row in zip((cache_k, cache_v), rows, strict=True):
        cache[:, :, position] = row
    return token, position, graph, logits
