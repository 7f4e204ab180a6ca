"""A training step with fused attention: no matrix of tokens by tokens is written to memory.

Problem: attention written out has about ten matrices [batch, heads, T, T] a layer, forward and backward. At `large`
each has 0.4 to 0.8 GB, and none of them is needed after the step.
Idea: `scaled_dot_product_attention` walks over the keys, keeps a maximum and a sum for each row, and computes the
scores again in the backward pass (chapter 4 builds such a kernel).
Cost: of 12 layers at `large` about 120 matrices of 0.4 to 0.8 GB are neither written nor read.
Predict: at 4.8 TB/s, how many milliseconds is that? And which becomes smaller by more, the time or the memory?
"""

import gpt
import torch

CLOCK = "wall"
PRECISION = "bf16"
VERSUS = "bf16"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"bf16_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, foreach=False)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = gpt.loss_of(words, weights, heads, gpt.fused_attention)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
