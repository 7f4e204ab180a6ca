"""A decoder with Llama's layer, in one file: RMSNorm, rotary embedding, grouped-query attention with a cache, SwiGLU.

One step takes one token and gives the logits of the next. Shapes: L layers, H hidden channels, KV key-value heads, each
with G query heads, D channels a head, F inner channels, V tokens in the vocabulary, C rows of the cache.

    w_embedding, w_head   [V, H]                  the head is not tied to the embedding
    w_norms               [2 L + 1, H]            two gains a layer, and the last
    w_qkv                 [L, (KV G + 2 KV) D, H]  rows of all queries, all keys, all values
    w_out                 [L, H, KV G D]
    w_gate_up             [L, 2 F, H]             rows of the gate, then of its factor
    w_down                [L, H, F]
    w_cos, w_sin          [C, D / 2]              of the rotary embedding, for each position
    cache_k, cache_v      [L, KV, C, D]           rows before `position` are what the model has seen

Weights are drawn, not trained: times and bytes do not depend on their values. Some channels are outliers, as trained
models have them, so that roundings are as harmful as there.
"""

import torch

EPS = 1e-5
BASE = 10_000.0  # of the rotary embedding: pair j turns by position / BASE^(2 j / D)
BLOCK = (
    1_048_573  # values are drawn once and repeated: a prime, so that rows do not begin at the same place, nor do arrays
)
SHIFT = BLOCK // 13  # from the beginning of one array to that of the next: there are 8
OUTLIERS, GAIN = 256, 4.0  # one channel of so many has a gain as large


def drawn(
    hidden, layers, heads, kv_heads, width, inner, vocabulary, context, dtype="bfloat16", device="cuda"
):  # the arguments of `inputs`
    """Fresh weights, a cache with a history, a token, and its position: one of the last 8 of `context`."""
    dtype = getattr(torch, dtype)

    block, start = torch.randn(BLOCK, device=device).repeat(2), 0  # twice, so that a part may begin anywhere

    def normal(*shape, std):
        nonlocal start
        count, start = torch.Size(shape).numel(), (start + SHIFT) % BLOCK
        part = block[start : start + min(count, BLOCK)]
        return (part * std).to(dtype).repeat(-(-count // BLOCK))[:count].view(shape)

    norms = 1 + normal(2 * layers + 1, hidden, std=0.1)
    norms[:, ::OUTLIERS] *= GAIN
    turns = torch.arange(context, device=device)[:, None] / BASE ** (torch.arange(0, width, 2, device=device) / width)
    return {
        "token": torch.randint(vocabulary, (1,), device=device),
        "position": context - 1 - torch.randint(min(8, context), (1,), device=device),
        "cache_k": normal(layers, kv_heads, context, width, std=1.0),
        "cache_v": normal(layers, kv_heads, context, width, std=1.0),
        "w_embedding": normal(vocabulary, hidden, std=1.0),
        "w_norms": norms,
        "w_qkv": normal(layers, (heads + 2 * kv_heads) * width, hidden, std=hidden**-0.5),
        "w_out": normal(layers, hidden, heads * width, std=(heads * width) ** -0.5),
        "w_gate_up": normal(layers, 2 * inner, hidden, std=hidden**-0.5),
        "w_down": normal(layers, hidden, inner, std=inner**-0.5),
        "w_head": normal(vocabulary, hidden, std=hidden**-0.5),
        "w_cos": turns.cos(),
        "w_sin": turns.sin(),
    }


def cost(cache_k, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head, **others):
    """What every step reads: all weights once (of the embedding a row), and the history, which lacks at most 8 rows."""
    weights = sum(w.nbytes for w in (w_norms, w_qkv, w_out, w_gate_up, w_down, w_head))
    return {"dram_read_bytes": weights + 2 * cache_k[:, :, 8:].nbytes}


def wide(x):
    """At least float32: sums and powers of 16 bits are taken there."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def norm(x, gain):  # [H] -> [H]
    x32 = wide(x)
    return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + EPS)).to(x.dtype) * gain


def turned(x, cos, sin):  # [heads, D] -> [heads, D]: channels j and j + D / 2 are a pair, turned by one angle
    low, high = wide(x).chunk(2, -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1).to(x.dtype)


def attention(q, keys, values, seen=None):  # [KV G, D], [KV, n, D] twice, [n] -> [KV G D]
    """Softmax of each query's products with the keys of its group. `seen`: which rows count; None for all."""
    groups = q.view(keys.shape[0], -1, q.shape[-1])  # [KV, G, D]
    scores = wide(groups @ keys.mT) * q.shape[-1] ** -0.5  # [KV, G, n]
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    return (scores.softmax(-1).to(values.dtype) @ values).reshape(-1)


def product(w, x):  # [N, K], [K] -> [N]: weights in the type of x, which is float64 in the reference
    return torch.nn.functional.linear(x[None], w.to(x.dtype))[0]  # of one row, as nn.Linear has it


def swiglu(x, w_gate_up, w_down):  # [H] -> [H]
    gate, up = product(w_gate_up, x).chunk(2)
    return product(w_down, torch.nn.functional.silu(gate) * up)


def step(attend, token, cos, sin, width, dtype, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head):
    """The logits [V] after one token [1], computed in `dtype`. `cos`, `sin`: [D / 2], of its position.

    `attend(layer, q, key, value)` keeps a layer's new key and value, both [KV, D], and returns its attention, [KV G D].
    """
    x, kv_rows = w_embedding[token].squeeze(0).to(dtype), w_qkv.shape[1] - w_out.shape[2]
    for layer in range(len(w_qkv)):
        rows = product(w_qkv[layer], norm(x, w_norms[2 * layer])).view(-1, width)
        q, key, value = rows.split([len(rows) - kv_rows // width, kv_rows // width // 2, kv_rows // width // 2])
        x = x + product(w_out[layer], attend(layer, turned(q, cos, sin), turned(key, cos, sin), value))
        x = x + swiglu(norm(x, w_norms[2 * layer + 1]), w_gate_up[layer], w_down[layer])
    return product(w_head, norm(x, w_norms[-1]))
