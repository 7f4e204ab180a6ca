"""Weighted geometric product, forward and backward, by the library's kernels: `clifford.sgp`, for any shape.

Problem: `optimized_sgp_backward_fused.py` has 16 rows a program, whatever the GPU, and waits for each row's bytes. A
row of 1024 features in 3D leaves a thread too few registers, and a narrow one leaves lanes idle.
Idea: the same sums in registers, and what it takes to hold at any shape:

    registers        each row reads its weights anew, from L1; dy is computed and stored grade by grade
    few features     several rows are a tile of one program
    many rows        as many programs as fit the GPU walk over all rows, and load the next one while they compute
    wide rows        above 1024 features several programs share a row; a first kernel finds its sums: 3 u more
    few rows         parts of rows get programs of their own, so that all SMs have work

A second kernel adds the programs' sums of the weights' gradient. Autograd launches the same kernels through the
operator `clifford.ops.sgp`.
Cost: 8 u, as before; beside them the programs' sums, 264 * 20 * 512 * 4 bytes for 264 programs, 10 MiB (2D: 396 * 10 *
512 * 4, 8 MiB).
Predict: at which sizes does it gain most over `optimized_sgp_backward_fused.py`?
"""

import torch
from clifford.sgp import backward, forward
from multivectors import drawn

VERSUS = "fused"
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    w = w.mT.contiguous().mT  # path by path in memory, as a layer keeps it
    return {"x": x, "y": y, "w": w, "gradient": torch.randn_like(x), "normalized": normalized}


def run(x, y, w, gradient, normalized):
    gradient, x, y, weights = (each.contiguous() for each in (gradient, x, y, w.mT))
    _out = forward(x, y, weights, normalized)  # of it, a loss is made; the gradients do not need it
    dx, dy, dw = backward(gradient, x, y, weights, normalized)
    return dx, dy, dw.mT
