"""Read a prompt in chunks of 512 tokens: what lies between the operations is 44 MB, however long the prompt.

Problem: `optimized_prefill_batched.py` makes arrays that grow with the prompt: 705 MB at 8192 tokens, for one layer.
Keys and values of other prompts could have this memory.

Idea: 512 tokens at a time. An array of [512, 14,336] is 14.7 MB, and the next chunk takes the same memory again.

Cost: the weights are read once for each chunk. At 8192 tokens, with an H200's datasheet:

    bytes       16 * 352 MB      = 5.6 GB         1.2 ms at 4.8 TB/s
    products    8192 * 352 MFLOP = 2.9 TFLOP      2.9 ms at 989 TFLOP/s

A chunk has 512 FLOP a byte, and the ridge point is 206: the weights still come in time. In chunks of 128 they would
not. In return, L2 may still hold an array of 14.7 MB when the next operation reads it.

Predict: at 8192 tokens, is it faster than `optimized_prefill_batched.py`, or slower? And at 1024, where `batched` takes
88 MB?
"""

import torch
from torch.nn.functional import linear, rms_norm, silu

VERSUS = "batched"
EPS = 1e-5
CHUNK = 512  # tokens: more than twice an H200's ridge point


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
    y = torch.empty_like(x)
    for t in range(0, len(x), CHUNK):
        y[t : t + CHUNK] = block(x[t : t + CHUNK], w_norm, w_gate, w_up, w_down)
    return y
