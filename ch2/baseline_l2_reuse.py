"""Four element-wise steps over 256 MiB, each over the whole vector: L2 has lost the values when the next step reads.

Problem: y = tanh(2x + 1) / 2 takes four calls: mul, add, tanh, mul, all into y. Each call reads and writes 256 MiB. An
L2 holds some tens of MiB: at the end of a call it has the end of y, and the next call begins at the start of y.

Cost: 8 * 256 MiB cross the memory bus.

Predict: `optimized_l2_reuse.py` makes the same four calls for one eighth of the vector at a time. If an eighth of y
stays in L2 between its four calls, how many times 256 MiB cross the memory bus?
"""

import torch

SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/tail": {"n": 100_003},
    "count": {"n": 262_144},
    "default": {"n": 67_108_864},  # 256 MiB of float32: larger than any L2
    "cpu": {"n": 16_777_216},
}


def inputs(n=67_108_864, chunks=8, device="cuda"):  # chunks: of the other version
    x = torch.randn(n, device=device)
    return {"x": x, "out": torch.empty_like(x), "chunks": chunks}


def cost(x, out, chunks):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


def steps(x, y):
    torch.mul(x, 2, out=y)
    torch.add(y, 1, out=y)
    torch.tanh(y, out=y)
    torch.mul(y, 0.5, out=y)


def run(x, out, chunks):
    steps(x, out)
    return out
