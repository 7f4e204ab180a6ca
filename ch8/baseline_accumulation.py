"""Gradients of a batch of 16 sequences at once: the activations of 8192 tokens wait for the backward pass, 1.9 GiB.

Problem: what the backward pass needs grows with the tokens of a batch. In units of 16 MiB, a float for each of 8192
tokens and 512 channels:

    layers   6 * 16 arrays (`baseline_checkpointing.py` names them)                 96   1.5 GiB
    head     log-softmax of 4096 words; when backward begins, two gradients of it   24   0.375 GiB

The batch is chosen for what it does to training. The memory has to be there.
Cost: 1.9 GiB, beside weights and gradients of 80 MiB each, which are as large for any batch.
Predict: `optimized_accumulation.py` has the same gradients from parts of 4 sequences, one after the other. What part of
the memory does it need, and how many times as long does it take?
"""

import gpt

SIZES = {
    "check": {"batch": 5, "tokens": 31, "layers": 2, "hidden": 24, "heads": 2, "vocabulary": 256},
    "check/one": {"batch": 1, "tokens": 129, "layers": 1, "hidden": 39, "heads": 3, "vocabulary": 128},
    "default": {},
    "cpu": {"batch": 16, "tokens": 32, "layers": 2, "hidden": 96, "heads": 3, "vocabulary": 256},
}
STRUCTURE = {"words": "below the vocabulary", "weights": "a model's: each layer keeps the size of what it gets"}


def inputs(batch=16, tokens=512, layers=6, hidden=512, heads=8, vocabulary=4096, device="cuda"):
    return gpt.drawn_for_gradients(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, weights, heads):
    return {"fp32_flops": gpt.flops(words, weights, len(weights[0]))}


def run(words, weights, heads):
    weights = gpt.leaves(weights)
    loss = gpt.loss_of(words, weights, heads, gpt.fused_attention)
    loss.backward()
    return loss.detach(), gpt.gradients_of(weights)
