"""Gate one token's vector in operations of torch: five kernels, each of which waits for the one before.

Problem: h = silu(Wg n) * (Wu n) with n = x / sqrt(mean(x^2) + eps) * w, RMSNorm and the first half of SwiGLU, for one
token. Wg and Wu are [5632, 2048] in a model of 1.1 B parameters and [14,336, 4096] in one of 8 B: half of all weights
that a token reads.

    norm       x -> n           8 KiB
    Wg n       reads Wg         117 MB
    Wu n       reads Wu         117 MB
    silu       28 KiB -> 28 KiB
    product    2 * 28 KiB -> 28 KiB

Cost: 235 MB, the two weights; everything else is less than 0.3 MB. But three of the five kernels move nearly nothing,
and take what a kernel takes to start, to reach its data and to end. While they run, memory idles.

Predict: `optimized_gate_up_fused.py` moves the same bytes in one kernel. Where does that gain more, at 2048 -> 5632 or
at 4096 -> 14,336?
"""

import torch
from compiled import compiled
from torch.nn.functional import linear, rms_norm, silu

SIZES = {
    "check": {"n": 127, "k": 129, "dtype": "float32"}, "check/one": {"n": 1, "k": 1, "dtype": "float32"},
    "check/long": {"n": 5, "k": 4097, "dtype": "float32"},
    "check/fp16": {"n": 13, "k": 2049, "dtype": "float16"},
    "check/bf16": {"n": 9, "k": 1409},
    "check/outliers": {"n": 67, "k": 65, "scale": 100.0, "dtype": "float32"},  # exp of a sum is beyond float32
    "count": {"n": 2048, "k": 2048},
    "default": {"n": 14_336, "k": 4096},  # 235 MB of bfloat16: larger than any L2
    "small/5632x2048": {"n": 5632, "k": 2048},
}  # fmt: skip
EPS = 1e-5


def inputs(n=14_336, k=4096, scale=1.0, dtype="bfloat16", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, w_norm = torch.randn(k, **like), 1 + 0.1 * torch.randn(k, **like)
    w_gate, w_up = (torch.randn(n, k, **like) * scale * k**-0.5 for _ in range(2))
    return {"x": x, "w_norm": w_norm, "w_gate": w_gate, "w_up": w_up}


def reference(x, w_norm, w_gate, w_up):
    normed = rms_norm(x, x.shape, w_norm, EPS)
    return silu(linear(normed, w_gate)) * linear(normed, w_up)


def library_compiled(x, w_norm, w_gate, w_up):
    return compiled(reference, w_gate)(x, w_norm, w_gate, w_up)


def cost(x, w_norm, w_gate, w_up):
    return {"dram_read_bytes": w_gate.nbytes + w_up.nbytes + w_norm.nbytes + x.nbytes}  # once; the result is small


def run(x, w_norm, w_gate, w_up):
    normed = rms_norm(x, x.shape, w_norm, EPS)
    return silu(linear(normed, w_gate)) * linear(normed, w_up)
