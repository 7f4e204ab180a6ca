"""Read a prompt at once: a product of matrices, which reads the weights once and uses each for every token.

Problem: `baseline_prefill.py` reads 352 MB for each token, and uses each weight once.

Idea: the same operations on all rows of x. A product of matrices keeps tiles of the weights near the tensor cores, and
multiplies them by many tokens:

    T tokens    2 * T FLOP for a weight of 2 bytes    T FLOP a byte

Cost: the weights once, and 2 FLOP for each weight and token. On an H200 (datasheet) both take equally long where

    T FLOP a byte = 989 TFLOP/s / 4.8 TB/s    206 tokens: the ridge point

Below it the time is that of the bytes, the same for 1 token and for 200. Above it, it grows with the tokens. So does
what lies between the operations. Three arrays of [T, 14,336] exist at once: 88 MB at 1024 tokens, 705 MB at 8192.

Predict: from 16 tokens to 64, to 256, to 1024: which of these steps, each to four times as many, costs nearly nothing?
"""

import torch
from torch.nn.functional import linear, rms_norm, silu

EPS = 1e-5


def inputs(tokens=1024, hidden=4096, wide=14_336, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, w_norm = torch.randn(tokens, hidden, **like), 1 + 0.1 * torch.randn(hidden, **like)
    w_gate, w_up = (torch.randn(wide, hidden, **like) * hidden**-0.5 for _ in range(2))
    w_down = torch.randn(hidden, wide, **like) * wide**-0.5
    return {"x": x, "w_norm": w_norm, "w_gate": w_gate, "w_up": w_up, "w_down": w_down}


def block(x, w_norm, w_gate, w_up, w_down):
    normed = rms_norm(x, x.shape[1:], w_norm, EPS)
    return x + linear(silu(linear(normed, w_gate)) * linear(normed, w_up), w_down)


def run(x, w_norm, w_gate, w_up, w_down):
    return block(x, w_norm, w_gate, w_up, w_down)
