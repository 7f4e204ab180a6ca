"""Four element-wise steps over 256 MiB, an eighth at a time: a step reads from L2 what the step before has written.

Problem: in `baseline_l2_reuse.py` each of the four calls reads from memory and writes to memory.

Idea: y = tanh(2x + 1) / 2 with four calls for each of 8 chunks. A chunk of y has 32 MiB, and an L2 some tens of MiB.
(The first call also reads x, which displaces a part of it.) At best

    2 * 256 MiB cross the memory bus: read x, write y
    6 * 256 MiB are read from L2 and written to it, at the rate of L2

Cost: 32 calls instead of 4. Between two calls the SMs become idle and start again.

Predict: assume that L2 copies at twice the rate of the memory, and that a call costs nothing. How many times faster is
this version? And is 8 the best number of chunks (`--size chunks` measures 2 to 128)?
"""

import torch


def inputs(n=67_108_864, chunks=8, device="cuda"):  # 8: of 32 MiB each at the default size, of 8 MiB on a CPU
    x = torch.randn(n, device=device)
    return {"x": x, "out": torch.empty_like(x), "chunks": chunks}


def steps(x, y):
    torch.mul(x, 2, out=y)
    torch.add(y, 1, out=y)
    torch.tanh(y, out=y)
    torch.mul(y, 0.5, out=y)


def run(x, out, chunks):
    for part, y in zip(x.chunk(chunks), out.chunk(chunks), strict=True):
        steps(part, y)
    return out
