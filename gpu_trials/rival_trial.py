"""Which attention makes the strongest rival of decode? python gpu_trials/rival_trial.py SIZE, from the root.

Each form is compiled and captured as ch7/rival.py does. Expected at `default`: products 1.9 ms, sums 1.2 to 1.3 ms (the
22 pairs of batched products of 8 rows are what is lost), sdpa between them. The fastest becomes the rival's.
"""

import sys
import time
import tomllib

sys.path[:0] = ["ch7", "."]
import baseline_decode
import model
import rival
import torch
import torch.nn.functional as F


def sums(q, keys, values, seen):
    groups = q.view(keys.shape[0], -1, 1, q.shape[-1]).float()
    scores = (groups * keys[:, None].float()).sum(-1) * q.shape[-1] ** -0.5
    share = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return (share[..., None] * values[:, None].float()).sum(-2).to(values.dtype).reshape(-1)


def sdpa(q, keys, values, seen):
    heads = q.view(1, -1, 1, q.shape[-1])
    return F.scaled_dot_product_attention(heads, keys[None], values[None], attn_mask=seen, enable_gqa=True).reshape(-1)


def main(size):
    sizes = baseline_decode.SIZES | tomllib.load(open("ch7/lessons.toml", "rb"))["decode"]["sizes"]
    torch.manual_seed(0)
    inputs = baseline_decode.inputs(**sizes[size], device="cuda")
    fixed = [inputs.pop(name) for name in ("token", "position", "cache_k", "cache_v", "w_cos", "w_sin")]
    first = None
    for form in (model.attention, sums, sdpa):
        begin = time.time()

        def forward(token, position, cache_k, cache_v, w_cos, w_sin, weights, form=form):
            seen = torch.arange(cache_k.shape[2], device=position.device) <= position

            def attend(layer, q, key, value):
                cache_k[layer].index_copy_(1, position, key[:, None])
                cache_v[layer].index_copy_(1, position, value[:, None])
                return form(q, cache_k[layer], cache_v[layer], seen)

            return model.step(attend, token, w_cos[position], w_sin[position], cache_k.shape[3], cache_k.dtype, **weights)

        compiled = torch.compile(forward, dynamic=False, fullgraph=True)
        caches = fixed[2:4]
        token, position, graph, logits = rival.capture(
            lambda t, p: compiled(t, p, *fixed[2:], inputs), fixed[0].clone(), fixed[1].clone(), caches
        )
        compile_s = time.time() - begin
        for _ in range(20):
            graph.replay()
        torch.cuda.synchronize()
        begin = time.time()
        for _ in range(200):
            graph.replay()
        torch.cuda.synchronize()
        ms = (time.time() - begin) * 5
        first = logits.float().clone() if first is None else first
        off = float((logits.float() - first).norm() / first.norm())
        print(f"{size} {form.__name__}: {ms:.3f} ms a token, compiled in {compile_s:.0f} s, off by {off:.1e}", flush=True)


main(sys.argv[1])
