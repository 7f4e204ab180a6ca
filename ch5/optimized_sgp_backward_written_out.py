"""Weighted geometric product, forward and backward, by autograd through 64 products in 3D: 259 u, 834 launches.

Problem: `baseline_sgp_backward.py` multiplies by zeros and keeps an intermediate of D u.
Idea: forward, each product of two blades is an operation, as in `optimized_sgp_written_out.py`; autograd keeps the two
factors of each. Blades are taken apart once, by `unbind`. (The gradient of a view x[i] is as large as x, and 0 except
in one blade. A view in each product would move 538 u for these instead of 46 u; 2D: 138 u instead of 22 u.)
Cost: forward 86 u and 273 launches (2D: 56 u, 95). Backward, where a blade has u / D bytes and x and y have 2 D blades:

    blades that move                                                     3D                   2D
    products          two gradients of a blade each: read 2, write 1     128   384            32    96
    their sums        of all these to 2 D blades: read 2, write 1        112   336            24    72
    their signs       times -1: read 1, write 1                           24    48             4     8
    weighted          times a weight: read 1; times a sum: read 2;
                      write 1: of both                                    44   220            14    70
    sums over rows    gradients of weights: read 1                        44    44            14    14
                                                                              1032 = 129 u         260 = 65 u
    gates, normalization, blades into one tensor                                      44 u               48 u

Predict: in 3D this version moves 2x the bytes of `baseline_sgp_backward.py` and launches 7x the kernels. Is it faster
or slower? And what share of its time does torch.compile take, which joins the operations between two reductions?
"""

import torch
from clifford import reference as formulas
from multivectors import drawn, gradients

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    return {"x": x, "y": y, "w": w, "gradient": torch.randn_like(x), "normalized": normalized}


def run(x, y, w, gradient, normalized):
    return gradients(formulas.sgp, x, y, w, gradient, normalized)
