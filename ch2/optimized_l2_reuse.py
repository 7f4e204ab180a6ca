"""Four element-wise steps over 256 MiB, an eighth at a time: a step finds in L2 what the step before has written.

    y = tanh(2x + 1) / 2        four calls for each of 8 chunks

A chunk of y is 32 MiB, and L2 has some tens of them. The first step reads x from memory, which passes through L2 and
displaces a part of it; the other three read and write y in L2, and memory sees y when it is displaced. At best

    2 * 256 MiB cross the memory bus, instead of 8: read x, write y
    6 * 256 MiB are read from L2 and written to it, at the rate of L2
    32 calls instead of 4, and between any two the SMs run empty

Predict before you measure: `python ch2/hardware_info.py` says how much faster your L2 is than your memory. How much of
4x is left? What becomes of it in chunks of 4 MiB, and what if all four steps were one kernel, as in chapter 3?
"""

import torch

CHUNKS = 8  # of 32 MiB each at the default size, of 8 MiB on a CPU


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
    for part, y in zip(x.chunk(CHUNKS), out.chunk(CHUNKS), strict=True):
        steps(part, y)
    return out
