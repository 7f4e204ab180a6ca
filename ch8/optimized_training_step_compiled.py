"""compiled.

Predict: todo.
"""

import gpt
import torch

CLOCK = "wall"
PRECISION = "bf16"
VERSUS = "fused"
DEVICE = "cuda"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"bf16_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


loss_of = torch.compile(gpt.loss_of, dynamic=False, fullgraph=True)


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, fused=True)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = loss_of(words, weights, heads, gpt.fused_attention)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
