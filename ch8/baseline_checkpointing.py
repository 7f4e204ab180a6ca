"""Gradients of 12 layers with all activations kept: 16 arrays of [B, T, H] a layer wait for the backward pass, 1.5 GiB.

Problem: the backward pass needs what the forward pass computed. Each layer keeps, in units of B T H floats (8 MiB):

    1   its input, for the first norm           1   the sum x, for the second norm
    1   the norm's result, for W_qkv            1   the norm's result, for W_up
    3   q, k, v, for attention                  4   before GELU
    1   attention's result, also for W_out      4   after GELU, for W_down

In all 16, and this for every layer at once: the first layer's are used last. The vocabulary is 256 bytes, so that the
head, which keeps logits, is small.
Cost: 12 layers * 16 * 8 MiB = 1.5 GiB. FLOPs: a product of the forward pass has two in the backward pass, so 3 parts.
Predict: `optimized_checkpointing.py` keeps one input a layer, and computes the other 15 arrays again. How many times as
long does it take, if the FLOPs of matrices decide, and what does it keep at most?
"""

import gpt

SIZES = {
    "check": {"batch": 3, "tokens": 31, "layers": 2, "hidden": 24, "heads": 2},
    "check/one": {"batch": 1, "tokens": 129, "layers": 1, "hidden": 39, "heads": 3},
    "default": {},
    "cpu": {"batch": 2, "tokens": 64, "layers": 4, "hidden": 96, "heads": 3},
}
STRUCTURE = {"words": "bytes", "weights": "a model's: each layer keeps the size of what it gets"}


def inputs(batch=4, tokens=1024, layers=12, hidden=512, heads=8, device="cuda"):
    return gpt.drawn_for_gradients(batch, tokens, layers, hidden, heads, 256, device)


def cost(words, weights, heads):
    return {"fp32_flops": gpt.flops(words, weights, 256)}


def run(words, weights, heads):
    weights = gpt.leaves(weights)
    loss = gpt.loss_of(words, weights, heads, gpt.fused_attention)
    loss.backward()
    return loss.detach(), gpt.gradients_of(weights)
