"""Weighted geometric product in 2D, forward and backward, by autograd through 16 products: 169 u, 283 launches.

Forward, every product of two blades is an operation, as in `optimized_sgp_2d.py`: 56 u, 95 launches, and autograd
keeps the factors of each. Backward, it takes them one by one. A blade is u / 4; x and y have 8 of them:

    16 products           32 gradients of a blade: read 2, write 1                      96 blades
    their sums            24, of 32 to 8 blades: read 2, write 1                        72
    their signs           4 times -1: read 1, write 1                                    8
    weighted              14 times a weight: read 1; 14 times a sum: read 2; write 1    70
    sums over rows        14 gradients of weights: read 1                               14
                                                                                       260 blades = 65 u
    gates, normalization, blades into one tensor                                                    48 u

Blades are taken apart once (`unbind`), as the gradient of x[i], a view, is as large as x, zeros but for one blade: had
every product its own, 32 of these and their sums would move 138 u instead of 22.

Predict before you measure: 1.6x the bytes and some 2.9x the launches of `baseline_sgp_2d_backward.py`. Faster or slower
than the einsum? A compiler may join all operations between two reductions: what does it leave of 169 u?
"""

import torch
from clifford import reference as formulas
from compiled import compiled
from inlined import inlined
from multivectors import both_ways, drawn, gradients

SIZES = {
    "check": {"batch": 3, "features": 37}, "check/one": {"batch": 1, "features": 1, "normalized": False},
    "check/narrow": {"batch": 131, "features": 5}, "check/wide": {"batch": 1, "features": 1031},
    "check/plain": {"batch": 5, "features": 129, "normalized": False},
    "check/fp16": {"batch": 7, "features": 65, "dtype": "float16"},
    "check/bf16": {"batch": 3, "features": 33, "dtype": "bfloat16"},
    "default": {}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x256": {"batch": 1024, "features": 256},
    "sweep/1024x512": {"batch": 1024, "features": 512}, "sweep/1024x1024": {"batch": 1024, "features": 1024},
    "sweep/2048x128": {"batch": 2048, "features": 128}, "sweep/2048x256": {"batch": 2048, "features": 256},
    "sweep/2048x512": {"batch": 2048, "features": 512}, "sweep/2048x1024": {"batch": 2048, "features": 1024},
    "sweep/4096x128": {"batch": 4096, "features": 128}, "sweep/4096x256": {"batch": 4096, "features": 256},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
    "sweep/8192x128": {"batch": 8192, "features": 128}, "sweep/8192x256": {"batch": 8192, "features": 256},
    "sweep/8192x512": {"batch": 8192, "features": 512}, "sweep/8192x1024": {"batch": 8192, "features": 1024},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):  # u = 32 MiB
    x, y, w = drawn(2, batch, features, dtype, device)
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
