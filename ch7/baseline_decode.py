"""Decode one token with a cache that grows: each layer copies all of its history, and the host waits for each token.

Problem: a layer's cache is a tensor of n rows. To append one, `torch.cat` makes a tensor of n + 1, and copies n. n
stands in Python, so the host has to read `position` from the GPU before it can launch anything.
Cost: at the default size (22 layers, 1.1 G parameters, bfloat16, n = 1024)

    weights        2.07 GB read, 0.43 ms: of W [N, K] each element meets one of x, so nothing is used twice
    history        2 * 22 * 4 heads * 64 channels * 2 bytes = 22.5 KB a position, 23 MB in all: read at least once
    torch.cat      reads and writes it, then attention reads it again
    operations     52 a layer, and 10: 1154 a token. If Python and framework need 5 us for each, 6 ms

By its datasheet, 4.8 TB/s, an H200 reads both, 2.09 GB, in 0.44 ms. (`model.py` is the model. Its `step` is the same in
all versions.)
Predict: what takes longest here: the weights, the copies of the history, or the launches?
"""

import model
import rival
import torch
import transformers_step

SIZES = {
    "check": {"hidden": 72, "layers": 2, "heads": 3, "kv_heads": 1, "inner": 40, "vocabulary": 101, "context": 127,
              "dtype": "float32"},
    "check/first": {"hidden": 64, "layers": 1, "heads": 2, "kv_heads": 2, "width": 32, "inner": 65, "vocabulary": 64,
                    "context": 1, "dtype": "float32"},
    "check/129": {"hidden": 130, "layers": 1, "heads": 6, "kv_heads": 2, "width": 32, "inner": 257, "vocabulary": 67,
                  "context": 129, "dtype": "float16"},
    "count": {"hidden": 256, "layers": 2, "heads": 4, "kv_heads": 2, "inner": 512, "vocabulary": 512, "context": 256,
              "dtype": "float16"},
    "default": {},
    "cpu": {"hidden": 256, "layers": 1, "heads": 8, "kv_heads": 8, "inner": 512, "vocabulary": 500,
            "dtype": "float32"},  # as many bytes of history as of weights: what is copied shows
}  # fmt: skip
CLOCK = "wall"  # a token waits for the host, too
TOLERANCE = (0.1, 0.25)  # each layer rounds to 16 bits; of 100,000 errors the largest is several times their RMS
NO_GRADIENTS = "a decoder has none"
NARROW_WEIGHTS = "in float64 1.1 G weights are 8.8 GB, and 8 G are 64 GB"
LIBRARY_NEEDS = {"library_transformers": "transformers"}


def inputs(
    hidden=2048, layers=22, heads=32, kv_heads=4, width=64, inner=5632, vocabulary=32_000, context=1024,
    dtype="bfloat16", device="cuda",
):  # fmt: skip
    return model.drawn(hidden, layers, heads, kv_heads, width, inner, vocabulary, context, dtype, device)


def library_compiled(token, position, cache_k, cache_v, w_cos, w_sin, **weights):  # torch.compile, in one graph
    return rival.step(token, position, cache_k, cache_v, w_cos, w_sin, weights)


def library_transformers(token, position, cache_k, cache_v, w_cos, w_sin, **weights):  # Hugging Face's Llama, compiled
    return transformers_step.step(token, position, cache_k, cache_v, weights)


def cost(token, position, cache_k, cache_v, **weights):
    return model.cost(cache_k, **weights)


def run(token, position, cache_k, cache_v, w_cos, w_sin, **weights):
    n = int(position)  # the host waits for the device

    def attend(layer, q, key, value):
        keys = torch.cat([cache_k[layer, :, :n], key[:, None]], 1)
        values = torch.cat([cache_v[layer, :, :n], value[:, None]], 1)
        cache_k[layer, :, n], cache_v[layer, :, n] = key, value
        return model.attention(q, keys, values)

    return model.step(attend, token, w_cos[n], w_sin[n], cache_k.shape[3], cache_k.dtype, **weights)
