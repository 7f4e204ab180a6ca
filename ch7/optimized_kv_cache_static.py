"""A step of decoding with a static cache: one row of 32 KiB a layer is written in place, nothing is copied.

Problem: `baseline_kv_cache.py` moves 288 MiB of keys and values for 96 that it attends to.
Idea: all rows that a sequence may ever have are allocated at its start. A step writes its row at `position`, and a mask
hides rows that are not written yet:

    index_copy   2 layers * 32 KiB
    attention    reads the capacity, 2048 rows    2 layers * 64 MiB
    scores       of as many rows, and a mask      2 layers * 20 MiB

No shape changes from step to step, and the position is read on the device: the same kernels can be replayed for every
token by a CUDA graph, which `torch.cat` does not allow.
Cost: 128 MiB from the first token on: as many bytes to keep and, with these operations, to read as for the longest
sequence. Unwritten rows must be finite, since 0 * NaN is NaN.
Predict: up to which number of rows in the cache does the copy of `baseline_kv_cache.py` move fewer bytes?
"""

import model
import torch

STRESS = {
    "NaN": "a row that is not written yet counts 0 times, and a decoder allocates zeros",
    "-inf": "a row that is not written yet counts 0 times, and a decoder allocates zeros",
}


def inputs(layers=2, kv_heads=64, group=4, d=128, context=1536, room=512, dtype="bfloat16", device="cuda"):
    capacity = -(-(context + room) // 64) * 64  # rows: whole blocks of 64
    heads = {"q": (kv_heads * group,), "key": (kv_heads,), "value": (kv_heads,)}
    rows = {name: (layers, *shape, d) for name, shape in heads.items()}
    rows |= dict.fromkeys(("cache_k", "cache_v"), (layers, kv_heads, capacity, d))
    arrays = {name: torch.randn(shape, device=device).to(getattr(torch, dtype)) for name, shape in rows.items()}
    n = max(context - 1 - 8 * int(torch.randint(2, ())), 0)  # rows that the cache holds; odd sizes multiply slowly
    return {**arrays, "n": n, "position": torch.tensor([n], device=device)}


def run(q, key, value, cache_k, cache_v, n, position):
    o, seen = torch.empty_like(q), torch.arange(cache_k.shape[2], device=q.device) <= position  # [capacity]
    for layer in range(len(q)):
        k = cache_k[layer].index_copy_(1, position, key[layer, :, None])  # [kv_heads, capacity, d]
        v = cache_v[layer].index_copy_(1, position, value[layer, :, None])
        o[layer] = model.attention(q[layer], k, v, seen).view_as(q[layer])
    return o
