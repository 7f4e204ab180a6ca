"""A training step with layers and head compiled: norms, GELU, residuals, loss become a few kernels between products.

Problem: between two products stand operations that read and write all activations: a bias, a GELU, a residual, a
norm, a conversion. Eager mode makes each of them a pass over memory, and a launch.
Idea: `torch.compile` sees a layer's forward and backward pass, and the head's. TorchInductor makes one kernel of
neighbours, and chooses what the backward pass computes again instead of reading it. All layers have the same shapes, so
a layer is compiled once for all. (The whole model as one function takes longer to compile, the more layers it has.)
Cost: a layer's products and attention stay the kernels that they were. At `large` an activation of a layer has 25 to
100 MB in bfloat16, and the logits have 1.6 GB.
(On a CPU compiling takes longer than the rest of the chapter, so this version asks for a GPU.)
Predict: which activation is the largest by far, and how often does eager mode read or write it?
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


block, head = (torch.compile(part, dynamic=False, fullgraph=True) for part in (gpt.block, gpt.head_loss))


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, fused=True)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = gpt.loss_of(words, weights, heads, gpt.fused_attention, block, head)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
