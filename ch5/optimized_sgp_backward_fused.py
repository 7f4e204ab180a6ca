"""Weighted geometric product, forward and backward, in one pass each way: 8 u, and nothing kept between them.

Problem: `optimized_sgp_backward.py` keeps every factor, and reads and writes memory in each of 834 kernels.
Idea: save only x and y. Backward computes the product again, in registers: that moves no bytes, while keeping the
product would write 1 u and read 1 u. Both sums over a row that the normalization's gradient needs are made while the
row is in registers. The gates are one factor c = phi(x[0]) phi(y[0]). With X, Y the gradients without it, one sum S =
sum over i of x[i] X[i] serves both gates:

    dx[i] = c X[i],   dx[0] = c X[0] + density(x[0]) phi(y[0]) S,   dy likewise, with Y and the same S

Cost: the least that each way can move, 8 u:

    forward     read x and y, write the answer                    3 u
    backward    read x, y and the gradient, write dx and dy       5 u

The weights' gradient is a sum over all rows. Each program adds up its own rows in registers, without atomics; a second
kernel adds the programs' sums: 264 * 20 * 512 * 4 bytes for 264 programs, 10 MiB (2D: 396 * 10 * 512 * 4, 8 MiB). So
two runs give equal bits. Extra memory: the answer, dx and dy, 3 u, and these sums. Backward needs registers for x, y,
the gradient, dx and 20 sums of each feature: 52 numbers in 3D, where forward needs 44. Autograd launches the same
kernels through the operator `clifford.ops.sgp`.
Predict: `yardstick_add` moves 8 u in four kernels. Does this version come as near to the measured memory limit as the
forward kernel alone, `optimized_sgp_fused.py`?
"""

import torch
from clifford.sgp import backward, forward
from multivectors import drawn

VERSUS = ""
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
