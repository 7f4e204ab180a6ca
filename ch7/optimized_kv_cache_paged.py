"""A step of decoding with a paged cache: blocks of 64 rows, found by a table, so that memory is kept for rows in use.

Problem: `optimized_kv_cache_static.py` keeps the capacity for every sequence, however short it stays.
Idea: a layer's memory is cut into blocks of 64 rows, and a sequence gets a block when it needs one. A table says which
blocks are its own, in order: row i is row i % 64 of block table[i // 64]. What that is worth, with 131,072 rows for a
sequence at most, 2048 rows on average, 32 layers, and 8 heads of 128 for keys and as many for values (128 KiB a row):

    static    131,072 * 128 KiB = 16 GiB a sequence      7 sequences in 112 GiB
    paged     2048 * 128 KiB = 256 MiB                   448, less 32 rows of 64 that a last block has empty: 441

The gather copies the blocks in use, since torch's product wants rows one after the other; a serving engine's own
kernel reads them by the table. Here the blocks lie in order, so that all versions' caches can be compared; no operation
makes use of that.
Cost: 3 * 96 MiB for 1536 rows, as with `torch.cat`, however large the capacity is, and a table of 8 bytes a block.
Predict: alone it is slower than `optimized_kv_cache_static.py`. How many times, if memory is the limit?
"""

import model
import torch

VERSUS = "static"
BLOCK = 64  # rows: 16 KiB of a head


def inputs(layers=2, kv_heads=64, group=4, d=128, context=1536, room=512, dtype="bfloat16", device="cuda"):
    capacity = -(-(context + room) // 64) * 64  # rows: whole blocks of 64
    heads = {"q": (kv_heads * group,), "key": (kv_heads,), "value": (kv_heads,)}
    rows = {name: (layers, *shape, d) for name, shape in heads.items()}
    rows |= dict.fromkeys(("cache_k", "cache_v"), (layers, kv_heads, capacity, d))
    arrays = {name: torch.randn(shape, device=device).to(getattr(torch, dtype)) for name, shape in rows.items()}
    n = max(context - 1 - 8 * int(torch.randint(2, ())), 0)  # rows that the cache holds; odd sizes multiply slowly
    return {**arrays, "n": n, "position": torch.tensor([n], device=device)}


def setup(q, key, value, cache_k, cache_v, n, position):
    return {"table": torch.arange(cache_k.shape[2] // BLOCK, device=q.device)}


def run(q, key, value, cache_k, cache_v, n, position, table):
    o, in_use = torch.empty_like(q), table[: n // BLOCK + 1]
    block, row = table[position // BLOCK], position % BLOCK
    for layer in range(len(q)):
        k, v = (cache[layer].unflatten(1, (-1, BLOCK)) for cache in (cache_k, cache_v))  # [kv_heads, blocks, 64, d]
        k[:, block, row], v[:, block, row] = key[layer, :, None], value[layer, :, None]
        k, v = (x.index_select(1, in_use).flatten(1, 2)[:, : n + 1] for x in (k, v))  # [kv_heads, n + 1, d]
        o[layer] = model.attention(q[layer], k, v).view_as(q[layer])
    return o
