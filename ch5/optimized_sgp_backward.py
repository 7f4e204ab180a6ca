"""Weighted geometric product, forward and backward, by autograd through 64 products in 3D: 259 u, 834 launches.

Forward, every product of two blades is an operation, as in `optimized_sgp.py`: 86 u, 273 launches (2D: 56 u, 95), and
autograd keeps the factors of each. Backward, it takes them one by one. A blade is u / D; x and y have 2 D of them:

    blades that move                                                     3D                   2D
    products          two gradients of a blade each: read 2, write 1     128   384            32    96
    their sums        of all these to 2 D blades: read 2, write 1        112   336            24    72
    their signs       times -1: read 1, write 1                           24    48             4     8
    weighted          times a weight: read 1; times a sum: read 2;
                      write 1: of both                                    44   220            14    70
    sums over rows    gradients of weights: read 1                        44    44            14    14
                                                                              1032 = 129 u         260 = 65 u
    gates, normalization, blades into one tensor                                      44 u               48 u

Blades are taken apart once (`unbind`), as the gradient of x[i], a view, is as large as x, zeros but for one blade: had
every product its own, 128 of these and their sums would move 538 u instead of 46 (2D: 32, 138 u instead of 22).

Predict before you measure: 2x the bytes and some 7x the launches of `baseline_sgp_backward.py`; in 2D, with 169 u and
283 launches, 1.6x and some 2.9x. Faster or slower than the einsum? A compiler may join all operations between two
reductions: what does it leave of 259 u?
"""

import torch
from clifford import reference as formulas
from compiled import compiled
from inlined import inlined
from multivectors import both_ways, drawn, gradients

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 64 MiB
    x, y, w = drawn(dimensions, batch, features, dtype, device)
    return {"x": x, "y": y, "w": w, "gradient": torch.randn_like(x), "normalized": normalized}


def reference(x, y, w, gradient, normalized):
    return formulas.sgp_backward(gradient, x, y, w, normalized)


def library(x, y, w, gradient, normalized):
    return both_ways(compiled, x, y, w, gradient, normalized)


def library_inlined(x, y, w, gradient, normalized):  # told to keep nothing that it can compute again
    return both_ways(inlined, x, y, w, gradient, normalized)


def yardstick_add(x, y, w, gradient, normalized):  # moves 8 u and computes next to nothing
    _out = torch.add(x, y)  # 3 u, as much as forward
    return torch.add(x, y), gradient.clone(), w.clone()  # 3 u and 2 u


def cost(x, y, w, gradient, normalized):
    return {"dram_bytes": 8 * x.nbytes + 3 * w.nbytes}  # 3 u forward, 5 u back: read x, y, gradient, write dx, dy


def run(x, y, w, gradient, normalized):
    return gradients(formulas.sgp, x, y, w, gradient, normalized)
