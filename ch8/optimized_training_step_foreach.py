"""A training step whose optimizer takes all tensors in each operation: a few launches instead of 608.

Problem: AdamW weight by weight launches 8 operations for each of 76 tensors. Most tensors are vectors of 512 numbers.
Idea: `foreach=True`. One launch works on many tensors: their addresses are its arguments.
Cost: the same passes over memory: each operation reads and writes all weights or moments, about 20 x 180 MB in all.
Only the launches are fewer.
Predict: at the default size, with 5 us of Python and framework a launch, how many milliseconds are gained at most?
Why is it less on a GPU that is busy for longer than the host needs to launch?
"""

import gpt
import torch

CLOCK = "wall"
PRECISION = "bf16"
VERSUS = "sdpa"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"bf16_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, foreach=True)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = gpt.loss_of(words, weights, heads, gpt.fused_attention)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
