"""One training step in float32, as it is first written: attention written out, and Adam weight by weight.

Predict: todo.
"""

import gpt
import torch

SIZES = {
    "check": {"batch": 5, "tokens": 31, "layers": 1, "hidden": 24, "heads": 3, "vocabulary": 50},
    "check/129": {"batch": 3, "tokens": 129, "layers": 2, "hidden": 64, "heads": 2, "vocabulary": 300},
    "default": {},
    "cpu": {"batch": 4, "tokens": 64, "layers": 4, "hidden": 192, "heads": 6, "vocabulary": 5000},
}
CLOCK = "wall"
STRUCTURE = {
    "words": "below the vocabulary, and not all of them the same",
    "state_weights": "a model's: zeros beyond the vocabulary, and each layer keeps the size of what it gets",
    "state_m": "of the gradients' size",
    "state_v": "a mean of squares",
}


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"fp32_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, foreach=False)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    loss = gpt.loss_of(words, weights, heads, gpt.masked_attention)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
