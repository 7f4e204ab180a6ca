"""The rival: the plain model with a static cache, by torch.compile, captured in one CUDA graph.

torch.compile(mode="reduce-overhead") would capture it, too, but does not where a function writes to its inputs, as this
one does to its cache. And as it records a graph it frees cuBLAS's workspace (`clear_cublas_manager`), in which every
other graph of the process still computes. Attention is torch's `scaled_dot_product_attention`.
"""

import model
import torch
from compiled import compiled

_captured = {}  # of one set of addresses: weights and cache keep theirs from token to token


def attention(q, keys, values, seen):
    """As `model.attention`, by torch's own."""
    return torch.nn.functional.scaled_dot_product_attention(
        q[None, :, None], keys[None], values[None], attn_mask=seen[None], enable_gqa=True
    ).reshape(-1)


def forward(token, position, cache_k, cache_v, w_cos, w_sin, weights):
    seen = torch.arange(cache_k.shape[2], device=position.device) <= position

    def attend(layer, q, key, value):
        cache_k[layer].index_copy_(1, position, key[:, None])
        cache_v[layer].index_copy_(1, position, value[:, None])
        return attention(q, cache_k[layer], cache_v[layer], seen)

    return model.step(attend, token, w_cos[position], w_sin[position], cache_k.shape[3], cache_k.dtype, **weights)


def step(token, position, cache_k, cache_v, w_cos, w_sin, weights):
    """The logits [V]; the same answer as every version's."""
    function, others = compiled(forward, cache_k), (cache_k, cache_v, w_cos, w_sin)

    def call(token, position):
        return function(token, position, *others, weights)

    return replay(_captured, call, token, position, (*others, *weights.values()))


def replay(captured, call, token, position, fixed):
    """`call(token, position)` by its graph. `fixed`: all else that it accesses, the two halves of the cache first.

    `captured` holds the graph for one set of addresses. On a CPU it is called.
    """
    if not token.is_cuda:
        return call(token, position)
    addresses = tuple(t.data_ptr() for t in fixed)
    if addresses not in captured:
        captured.clear()  # a graph keeps its memory
        captured[addresses] = capture(call, token.clone(), position.clone(), fixed[:2])
    kept_token, kept_position, graph, logits = captured[addresses]
    kept_token.copy_(token)
    kept_position.copy_(position)
    graph.replay()
    return logits


def capture(call, token, position, caches):
    rows = [cache[:, :, position].clone() for cache in caches]
    call(token, position)  # compiles: that may not happen during a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = call(token, position)
    for cache, row in zip(caches, rows, strict=True):
        cache[:, :, position] = row
    return token, position, graph, logits
