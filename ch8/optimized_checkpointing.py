"""Gradients of 12 layers from one kept array a layer: 216 MiB instead of 1.5 GiB, for a part of the forward pass again.

Problem: `baseline_checkpointing.py` keeps 16 arrays of B T H floats a layer until the backward pass comes to it.
Idea: `torch.utils.checkpoint` keeps a layer's input only. When the backward pass comes to a layer, it is computed again
from its input, and the other 15 exist for that time:

    kept at most   12 inputs + 15 arrays of one layer = 27 * 8 MiB = 216 MiB, 1 / 7
    done again     the forward pass of each layer, up to its last kept array

The last kept array is GELU's result, so W_down's product is not done again: of 12 H^2 weights a layer, 8 H^2.
Cost: in matrices 3 2/3 parts instead of 3, 11 / 9 = 1.22 times the FLOPs. (A whole layer done again costs 4 / 3.) It is
slower by design. What it buys is memory: a larger batch, longer sequences, or a model that fits at all.
Predict: how many layers does the same memory hold without it, and with it, if weights and gradients are left out?
"""

import gpt
from torch.utils.checkpoint import checkpoint


def inputs(batch=4, tokens=1024, layers=12, hidden=512, heads=8, device="cuda"):
    return gpt.drawn_for_gradients(batch, tokens, layers, hidden, heads, 256, device)


def layer(x, *arguments):
    return checkpoint(gpt.block, x, *arguments, use_reentrant=False)


def run(words, weights, heads):
    weights = gpt.leaves(weights)
    loss = gpt.loss_of(words, weights, heads, gpt.fused_attention, layer)
    loss.backward()
    return loss.detach(), gpt.gradients_of(weights)
