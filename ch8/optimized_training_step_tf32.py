"""The products of a training step in TF32.

Predict: todo.
"""

import gpt
import torch

CLOCK = "wall"
PRECISION = "tf32"
DEVICE = "cuda"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"tf32_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, foreach=False)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    loss = gpt.loss_of(words, weights, heads, gpt.masked_attention)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.backends.cuda.matmul.fp32_precision = before
    return loss.detach()
