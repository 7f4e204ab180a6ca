"""From a layer's input to its query and its row in the cache, in torch's operations: a product and 12 small kernels.

Problem: n = RMSNorm(x); query, key, value = Wqkv @ n; query and key are rotated by their position (rotary embedding,
pairs of elements j and j + d/2); key and value are written to row `position` of the cache. For one token all but the
product is small, yet each operation is a kernel that waits for the one before:

    product       40 heads of 64 * 2048 weights of 2 bytes = 10 MiB a layer, 2.2 us at 4.8 TB/s (H200, datasheet)
    the others    2560 values, 5 KiB, through memory from kernel to kernel: norm, 4 products, 2 sums, cat, conversion,
                  copy of q, 2 rows of the cache

Cost: 13 launches a layer (21 where torch has no kernel for the norm), of which 12 mostly start and end. The cosines and
sines are tables, looked up at the position on the device. Layers differ, as in a model: 8 of them are 80 MiB, more than
L2 keeps.
Predict: if a small kernel takes 2 us from start to start (assumed), what part of this step's time is the product?
"""

import torch
from compiled import compiled
from torch.nn.functional import linear, rms_norm

SIZES = {
    "check": {"layers": 2, "hidden": 127, "kv_heads": 2, "group": 3, "half": 5, "capacity": 9, "dtype": "float32"},
    "check/one": {"layers": 1, "hidden": 1, "kv_heads": 1, "group": 1, "half": 1, "capacity": 3, "dtype": "float32"},
    "check/fp16": {"layers": 1, "hidden": 129, "kv_heads": 3, "group": 1, "half": 9, "capacity": 5, "dtype": "float16"},
    "check/bf16": {"layers": 3, "hidden": 264, "kv_heads": 1, "group": 5, "half": 8, "capacity": 4},
    "count": {"layers": 1, "hidden": 512, "capacity": 64},
    "default": {},
    "large/8b": {"layers": 2, "hidden": 4096, "kv_heads": 8, "group": 4, "half": 64},
}  # fmt: skip
EPS = 1e-5


def inputs(layers=8, hidden=2048, kv_heads=4, group=8, half=32, capacity=2048, dtype="bfloat16", device="cuda"):
    d = 2 * half
    rows = {"x": (hidden,), "w_norm": (hidden,), "w_qkv": (kv_heads * (group + 2) * d, hidden)}
    rows |= dict.fromkeys(("cache_k", "cache_v"), (kv_heads, capacity, d))
    arrays = {name: torch.randn(layers, *shape, device=device) for name, shape in rows.items()}
    arrays["w_qkv"] *= hidden**-0.5
    arrays = {name: array.to(getattr(torch, dtype)) for name, array in arrays.items()}
    turns = torch.arange(capacity, device=device)[:, None] * 10_000.0 ** (-torch.arange(half, device=device) / half)
    position = torch.randint(capacity, (1,), device=device)
    return {**arrays, "w_cos": turns.cos(), "w_sin": turns.sin(), "position": position}


def library_compiled(x, w_norm, w_qkv, cache_k, cache_v, w_cos, w_sin, position):
    return compiled(run, x)(x, w_norm, w_qkv, cache_k, cache_v, w_cos, w_sin, position)


def cost(x, w_norm, w_qkv, cache_k, cache_v, w_cos, w_sin, position):
    return {"dram_read_bytes": w_qkv.nbytes + w_norm.nbytes + x.nbytes}


def run(x, w_norm, w_qkv, cache_k, cache_v, w_cos, w_sin, position):
    layers, kv_heads, _, d = cache_k.shape
    q = x.new_empty(layers, w_qkv.shape[1] // d - 2 * kv_heads, d)
    cos, sin = w_cos[position], w_sin[position]  # [1, d / 2], float32
    for layer in range(layers):
        n = rms_norm(x[layer], x.shape[1:], w_norm[layer], EPS)
        qk, value = linear(n, w_qkv[layer]).view(-1, d).tensor_split([-kv_heads])  # of qk: [heads + kv_heads, d]
        low, high = qk.chunk(2, -1)
        qk = torch.cat([low * cos - high * sin, high * cos + low * sin], -1).to(x.dtype)
        q[layer], key = qk.tensor_split([-kv_heads])
        cache_k[layer].index_copy_(1, position, key[:, None])
        cache_v[layer].index_copy_(1, position, value[:, None])
    return q
