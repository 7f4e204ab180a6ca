"""One training step as it is first written: float32 products, attention written out, Adam weight by weight.

Problem: a model of GPT-2's shape (`gpt.py`): its loss, the gradients of all weights, and a step of AdamW. Each
version takes the same step from the same weights and moments.
Cost: at the default size (4 sequences of 512 tokens, 6 layers of 512 channels, 50,257 words: 45 M weights)

    products       0.57 TFLOP in float32
    logits         2048 x 50,257, 412 MB in float32; the loss and its gradient read and write them several times
    attention      a matrix of 512 x 512 for each of 32 heads is 34 MB: about ten are written and read in each layer
    AdamW          8 operations for each of 76 tensors; the least is 7 x 180 MB: weights, gradients, two moments
    launches       about 900, each issued by the host from Python: 5 us, or several times as much

By its datasheet an H200 makes 67 TFLOP/s in float32 and 989 in bfloat16, and its memory moves 4.8 TB/s.
Predict: which of these lines takes the longest? And at `large`, GPT-2 itself with 16,384 tokens and 13 TFLOP a step?
"""

from functools import partial

import gpt
from torch.utils.checkpoint import checkpoint

SIZES = {
    "check": {"batch": 5, "tokens": 31, "layers": 1, "hidden": 24, "heads": 2, "vocabulary": 50},
    "check/129": {"batch": 3, "tokens": 129, "layers": 2, "hidden": 64, "heads": 2, "vocabulary": 300},
    "default": {},
    "cpu": {"batch": 2, "tokens": 64, "layers": 1, "hidden": 192, "heads": 6, "vocabulary": 2048},  # 0.9 M weights
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


def reference(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    layer = partial(checkpoint, gpt.block, use_reentrant=False)  # all of a step's activations in float64 are too many
    loss = gpt.loss_of(words, weights, heads, gpt.masked_attention, layer=layer)
    loss.backward()
    gpt.adamw(weights, state_m, state_v, foreach=False).step()
    return loss.detach()


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
