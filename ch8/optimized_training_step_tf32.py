"""A training step with products in TF32: tensor cores take float32, and round its factors to 11 bits.

Problem: float32 products run on the CUDA cores, at a tenth of the rate that the tensor cores have for shorter
numbers.
Idea: one setting. Weights, activations and sums stay float32, and factors are rounded on their way into a product.
Cost: 0.57 TFLOP at 495 TFLOP/s instead of 67 (an H200's datasheet). All else stays: the 412 MB of logits, the
matrices of attention, about 900 launches.
Predict: the products are 7 times as fast. How much faster is the step at `large`, if they were 9 tenths of its time?
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
