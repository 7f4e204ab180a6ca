"""A training step in bfloat16 by autocast: half of the bytes of each product, and a conversion for each weight.

Problem: in TF32 each activation still has 4 bytes, and the products read and write all of them.
Idea: `torch.autocast` converts what enters a product to bfloat16. Weights and moments stay float32, and so do sums
over many elements: the norms, the softmax, the loss.
Cost: products at 989 instead of 495 TFLOP/s (an H200's datasheet) with half of the bytes; against it 138 more
launches that convert weights, activations and gradients.
Predict: logits come out in bfloat16, and the loss is taken in float32. Do they need less memory than before?
"""

import gpt
import torch

CLOCK = "wall"
PRECISION = "bf16"
VERSUS = "tf32"


def inputs(batch=4, tokens=512, layers=6, hidden=512, heads=8, vocabulary=50_257, device="cuda"):
    return gpt.drawn(batch, tokens, layers, hidden, heads, vocabulary, device)


def cost(words, state_weights, state_m, state_v, heads, vocabulary):
    return {"bf16_flops": gpt.flops(words, state_weights, vocabulary), "dram_bytes": gpt.adam_bytes(state_weights)}


def setup(words, state_weights, state_m, state_v, heads, vocabulary):
    weights = gpt.leaves(state_weights, vocabulary)
    return {"weights": weights, "optimizer": gpt.adamw(weights, state_m, state_v, foreach=False)}


def run(words, state_weights, state_m, state_v, heads, vocabulary, weights, optimizer):
    with torch.autocast(words.device.type, torch.bfloat16):
        loss = gpt.loss_of(words, weights, heads, gpt.masked_attention)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
