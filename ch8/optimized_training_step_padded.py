"""A training step with the vocabulary padded to 50,304: rows of logits begin at aligned addresses.

Problem: a row of logits has 50,257 numbers of 2 bytes. Rows begin at odd multiples of 2 bytes, and tensor cores'
kernels load and store 16 bytes at a time: with such rows cuBLAS has to choose kernels that do less at once.
Idea: 47 rows more in the embedding, all zeros, to a multiple of 128. Their logits are set to minus infinity, so that
the loss is the same, and their gradients are 0.
Cost: 0.1 % more products and bytes. Three products have this dimension: logits, and both of their gradients, 29 % of
the FLOPs at `large`.
Predict: products want dimensions that are multiples of 8. Which other dimension of this model would you pad?
"""

import gpt
import torch

CLOCK = "wall"
PRECISION = "bf16"
VERSUS = "compiled"
DEVICE = "cuda"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"bf16_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


block, head = (torch.compile(part, dynamic=False, fullgraph=True) for part in (gpt.block, gpt.head_loss))


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, fused=True)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = gpt.loss_of(words, weights, heads, gpt.fused_attention, block, head, vocabulary)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
