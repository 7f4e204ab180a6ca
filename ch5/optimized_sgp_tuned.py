"""Weighted geometric product by the library's kernel: `clifford.sgp`, tuned for any number of rows and features.

Problem: in `optimized_sgp_fused.py` a program has one row. It waits for that row's bytes before it computes, each row
reads its weights again, narrow rows leave lanes idle, and wide ones do not fit.
Idea: the same work in registers, and what it takes to hold at any shape:

    few features     several rows are a tile of one program, so that no lane is idle
    many rows        a program walks over rows: it reads its weights once, and the next row's bytes while it computes
    odd features     rows that begin at no multiple of 16 bytes are cut more finely, for more loads in flight
    wide rows        above 1024 features several programs share a row; a first kernel finds its sums: 2 u more
    a layer          a bias can be added to y as it is read (`optimized_layer.py`); a PyTorch operator with gradients

Cost: 3 u, as before. In 3D a program holds 48 KiB of x, y and the answer of 512 features in registers, and 40 KiB of
weights. 32 KiB of shared memory have the next row of x and y in flight, and as many this row (2D: half of all these).
Predict: at which sizes does it gain most over `optimized_sgp_fused.py`?
"""

from clifford.sgp import forward
from multivectors import drawn

VERSUS = "fused"
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    w = w.mT.contiguous().mT  # path by path in memory, as a layer keeps it
    return {"x": x, "y": y, "w": w, "normalized": normalized}


def run(x, y, w, normalized):
    return forward(x.contiguous(), y.contiguous(), w.mT.contiguous(), normalized)  # one kernel
