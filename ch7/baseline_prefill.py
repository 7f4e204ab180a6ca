"""Read a prompt a token at a time: the weights of a block cross the memory bus once for each token.

Problem: y = x + Wd (silu(Wg n) * (Wu n)), n the RMSNorm of x, for all tokens of a prompt: the second half of a layer. A
prompt is known in advance, so its tokens need not come one after the other, as they do when a model writes.

    Wg, Wu, Wd    3 * 4096 * 14,336 * 2 bytes = 352 MB in a layer of a model of 8 B parameters
    a token       reads all of them, for one multiplication and one addition each: 1 FLOP a byte

Cost: for 1024 tokens, with an H200's datasheet:

    bytes       1024 * 352 MB        = 361 GB       75 ms at 4.8 TB/s
    products    1024 * 2 * 176 * 10^6 = 361 GFLOP    0.36 ms at 989 TFLOP/s

Predict: `optimized_prefill_batched.py` reads the weights once. How many times faster can it be?
"""

import torch
from compiled import compiled
from torch.nn.functional import linear, rms_norm, silu

SIZES = {
    "check": {"tokens": 5, "hidden": 127, "wide": 129, "dtype": "float32"},
    "check/one": {"tokens": 1, "hidden": 1, "wide": 1, "dtype": "float32"},
    "check/chunks": {"tokens": 1025, "hidden": 9, "wide": 17, "dtype": "float32"},
    "check/bf16": {"tokens": 17, "hidden": 65, "wide": 33},
    "count": {"tokens": 1024, "hidden": 64, "wide": 192, "dtype": "float32"},
    "default": {"tokens": 1024, "hidden": 4096, "wide": 14_336},  # 352 MB of weights: larger than any L2
    "cpu": {"tokens": 8, "hidden": 1024, "wide": 2816, "dtype": "float32"},  # 35 MB of weights
    "long/8192": {"tokens": 8192},
}
EPS = 1e-5


def inputs(tokens=1024, hidden=4096, wide=14_336, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, w_norm = torch.randn(tokens, hidden, **like), 1 + 0.1 * torch.randn(hidden, **like)
    w_gate, w_up = (torch.randn(wide, hidden, **like) * hidden**-0.5 for _ in range(2))
    w_down = torch.randn(hidden, wide, **like) * wide**-0.5
    return {"x": x, "w_norm": w_norm, "w_gate": w_gate, "w_up": w_up, "w_down": w_down}


def reference(x, w_norm, w_gate, w_up, w_down):
    return block(x, w_norm, w_gate, w_up, w_down)


def library_compiled(x, w_norm, w_gate, w_up, w_down):
    return compiled(block, x)(x, w_norm, w_gate, w_up, w_down)


def cost(x, w_norm, w_gate, w_up, w_down):
    flops = {torch.float32: "fp32_flops", torch.bfloat16: "bf16_flops"}[x.dtype]
    weights = w_norm.nbytes + w_gate.nbytes + w_up.nbytes + w_down.nbytes
    return {"dram_bytes": weights + 2 * x.nbytes, flops: 6 * len(x) * w_gate.numel()}  # read all, write y


def block(x, w_norm, w_gate, w_up, w_down):
    normed = rms_norm(x, x.shape[1:], w_norm, EPS)
    return x + linear(silu(linear(normed, w_gate)) * linear(normed, w_up), w_down)


def run(x, w_norm, w_gate, w_up, w_down):
    y = torch.empty_like(x)
    for t in range(len(x)):
        y[t : t + 1] = block(x[t : t + 1], w_norm, w_gate, w_up, w_down)
    return y
