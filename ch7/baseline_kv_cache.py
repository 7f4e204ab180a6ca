"""A step of decoding with a cache that grows by `torch.cat`: every layer copies all earlier keys and values, 96 MiB.

Problem: a new token adds one row to each layer's keys and values, 32 KiB for 8 sequences of 8 heads of 128 channels in
16 bits, and attends to all rows. A cache that is as long as what it holds has to be allocated anew for a row more, and
copied (transformers' DynamicCache):

    cat          reads 1535 rows, writes 1536     2 layers * 2 * 48 MiB
    attention    reads 1536                       2 layers * 48 MiB
    scores       written and read by 5 kernels    2 layers * 12 MiB, in all versions

Cost: three times the rows that attention alone reads, 288 MiB for 96; and two caches at once while a layer is copied.
In all, n tokens copy n * (n - 1) / 2 rows. (The row is also written to the array that the harness compares.)
Predict: `optimized_kv_cache_static.py` writes the row in place, and attends to 2048 rows, of which 1536 count. How
many times as fast is it, if memory is the limit?
"""

import model
import torch

SIZES = {
    "check": {"layers": 2, "kv_heads": 2, "group": 3, "d": 16, "context": 127, "room": 3, "dtype": "float32"},
    "check/one": {"layers": 1, "kv_heads": 3, "group": 1, "d": 24, "context": 1, "room": 1, "dtype": "float32"},
    "check/full": {"layers": 1, "kv_heads": 1, "group": 5, "d": 8, "context": 128, "room": 0, "dtype": "float32"},
    "check/block": {"layers": 1, "kv_heads": 3, "group": 2, "d": 40, "context": 129, "room": 0, "dtype": "float32"},
    "check/first": {"layers": 3, "kv_heads": 1, "group": 2, "d": 16, "context": 65, "room": 70, "dtype": "float32"},
    "count": {"context": 2048, "room": 2048},
    "default": {},
    "cpu": {"layers": 1, "kv_heads": 2, "group": 1, "d": 64, "context": 1792, "room": 256, "dtype": "float32"},  # 2 MiB
}


def inputs(layers=2, kv_heads=64, group=4, d=128, context=1536, room=512, dtype="bfloat16", device="cuda"):
    capacity = -(-(context + room) // 64) * 64  # rows: whole blocks of 64
    heads = {"q": (kv_heads * group,), "key": (kv_heads,), "value": (kv_heads,)}
    rows = {name: (layers, *shape, d) for name, shape in heads.items()}
    rows |= dict.fromkeys(("cache_k", "cache_v"), (layers, kv_heads, capacity, d))
    arrays = {name: torch.randn(shape, device=device).to(getattr(torch, dtype)) for name, shape in rows.items()}
    n = max(context - 1 - 8 * int(torch.randint(2, ())), 0)  # rows that the cache holds; odd sizes multiply slowly
    return {**arrays, "n": n, "position": torch.tensor([n], device=device)}


def cost(q, key, value, cache_k, cache_v, n, position):
    rows = cache_k[:, :, 0].nbytes + cache_v[:, :, 0].nbytes
    return {"dram_read_bytes": (n + 1) * rows + q.nbytes}  # every row that counts


def run(q, key, value, cache_k, cache_v, n, position):
    o = torch.empty_like(q)
    for layer in range(len(q)):
        k = torch.cat([cache_k[layer, :, :n], key[layer, :, None]], 1)  # [kv_heads, n + 1, d]
        v = torch.cat([cache_v[layer, :, :n], value[layer, :, None]], 1)
        o[layer] = model.attention(q[layer], k, v).view_as(q[layer])
    cache_k[:, :, n], cache_v[:, :, n] = key, value
    return o
