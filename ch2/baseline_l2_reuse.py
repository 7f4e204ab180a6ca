"""Four element-wise steps over 256 MiB, each over the whole vector: what one writes has left L2 when the next reads it.

    y = tanh(2x + 1) / 2        four calls: mul, add, tanh, mul, all into y

Each call reads and writes 256 MiB. An L2 of some tens of MiB keeps what was written last: the end of y. The next call
begins at its start.

    8 * 256 MiB cross the memory bus, where 2 would do

Predict before you measure: `optimized_l2_reuse.py` makes the same calls on one eighth of the vector at a time. How many
of the 8 passes are left?
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


def inputs(n=67_108_864, device="cuda"):
    x = torch.randn(n, device=device)
    return {"x": x, "out": torch.empty_like(x)}


def cost(x, out):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


def steps(x, y):
    torch.mul(x, 2, out=y)
    torch.add(y, 1, out=y)
    torch.tanh(y, out=y)
    torch.mul(y, 0.5, out=y)


def run(x, out):
    steps(x, out)
    return out
