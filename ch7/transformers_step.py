"""Another rival: a token by Hugging Face transformers' Llama, with its static cache, compiled, in one CUDA graph.

Nothing is copied: the parameters are views of `w_*`, and the cache's layers are views of `cache_k` and `cache_v`. The
model turns queries and keys by cosines and sines of its own, which it rounds to the type of its weights.
"""

from functools import lru_cache, partial
from unittest.mock import patch

import model
import rival
import torch
from compiled import compiled

_bound = {}  # the model -> the addresses of its weights and its cache
_captured = {}  # of these addresses


@lru_cache(maxsize=1)  # a model keeps the memory of its weights
@patch.dict("os.environ")  # scikit-learn, which transformers imports if it is there, sets a variable
def llama(heads, kv_heads, width, layers, context, vocabulary, hidden, inner, device):
    """transformers' model without weights, and a static cache without memory."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache, logging
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    logging.set_verbosity_error()  # nothing is written beside the table
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=heads, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=width, max_position_embeddings=context,
        rms_norm_eps=model.EPS, rope_parameters={"rope_type": "default", "rope_theta": model.BASE},
        attn_implementation="sdpa",
    )  # fmt: skip
    config.hidden_size = hidden  # not before: only multiples of `heads` would be accepted
    with torch.device("meta"):
        decoder = LlamaForCausalLM(config).eval().requires_grad_(False)
    decoder.model.rotary_emb = LlamaRotaryEmbedding(config).to(device)
    return decoder, StaticCache(config, context)


def parameters(width, kv_heads, w_embedding, w_norms, w_qkv, w_out, w_gate_up, w_down, w_head):
    """Views of the weights, by transformers' names."""
    named = {"model.embed_tokens": w_embedding, "model.norm": w_norms[-1], "lm_head": w_head}
    rows = [w_out.shape[2], kv_heads * width, kv_heads * width]
    for i in range(len(w_qkv)):
        layer = f"model.layers.{i}."
        names = [f"{layer}self_attn.{name}_proj" for name in "qkv"]
        named |= dict(zip(names, w_qkv[i].split(rows), strict=True)) | {f"{layer}self_attn.o_proj": w_out[i]}
        names = [f"{layer}mlp.{name}_proj" for name in ("gate", "up")]
        named |= dict(zip(names, w_gate_up[i].chunk(2), strict=True)) | {f"{layer}mlp.down_proj": w_down[i]}
        names = [f"{layer}{name}_layernorm" for name in ("input", "post_attention")]
        named |= dict(zip(names, w_norms[2 * i : 2 * i + 2], strict=True))
    return {f"{name}.weight": weight for name, weight in named.items()}


def bind(decoder, static, cache_k, cache_v, weights):
    decoder.load_state_dict(parameters(cache_k.shape[3], cache_k.shape[1], **weights), assign=True)
    for layer, keys, values in zip(static.layers, cache_k, cache_v, strict=True):
        layer.lazy_initialization(keys[None, :, :0], values[None, :, :0])
        layer.keys, layer.values = keys[None], values[None]


def forward(decoder, static, token, position):
    for layer in static.layers:
        layer.cumulative_length.copy_(position[0])  # where the layer writes its next row
    return decoder(token[None], position_ids=position[None], past_key_values=static, use_cache=True).logits[0, 0]


@torch.no_grad()
def step(token, position, cache_k, cache_v, weights):
    """The logits [V], in the type of the weights."""
    layers, kv_heads, context, width = cache_k.shape
    heads, inner = weights["w_out"].shape[2] // width, weights["w_down"].shape[2]
    decoder, static = llama(heads, kv_heads, width, layers, context, *weights["w_head"].shape, inner, token.device)
    function, fixed = compiled(forward, cache_k), (cache_k, cache_v, *weights.values())
    addresses = [t.data_ptr() for t in fixed]
    if _bound.get(decoder) != addresses:
        _bound.clear()
        bind(decoder, static, cache_k, cache_v, weights)
        _bound[decoder] = addresses
    return rival.replay(_captured, partial(function, decoder, static), token, position, fixed)
