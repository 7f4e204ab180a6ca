"""Weighted geometric product, forward and backward, by autograd through an einsum: 130 u in 3D; the least is 8 u.

Problem: autograd keeps what the backward pass needs. Here that is the gated x and y and the larger intermediate of
`baseline_sgp.py`, [b, n, k, j] of D u. Backward, each matrix product becomes two.
Cost: u is the bytes of x, 64 MiB at the default size (2D: 32 MiB).
                                                                                           3D         2D
    forward                                                                               49 u       36 u
    normalization        quotients, the sums that they were divided by, and squares       18 u     18.5 u
    ... times y          dy; and of [b, n, k, j] its gradient, D u                        20 u       12 u
    ... times x          dx; and of weights times table their gradient                    18 u       10 u
    two gates            for one blade, a tensor of u that is 0 elsewhere; sums of two    25 u     29.5 u
                                                                                         130 u      106 u

The weights' gradient comes from the gradient of all D^3 numbers of a feature: 7 of 8 of these (2D: 3 of 4) belong to
zeros of the table. The least is 8 u: read x and y, write the answer; read x, y and the gradient, write dx and dy.
Predict: at an H200's datasheet rate of 4.8 TB/s, 130 u of 64 MiB take 1.8 ms. How many times as long does this version
take?
"""

from functools import partial

import published
import torch
from clifford import reference as formulas
from compiled import compiled
from compiled_recompute import inlined
from multivectors import both_ways, drawn, gradients

SIZES = {
    "check": {"batch": 2, "features": 37}, "check/2d": {"dimensions": 2, "batch": 19, "features": 5},
    "check/one": {"batch": 1, "features": 1, "normalized": False},
    "check/2d/fp16": {"dimensions": 2, "batch": 2, "features": 65, "dtype": "float16"},
    "check/tuned/2d/narrow": {"dimensions": 2, "batch": 131, "features": 5},
    "check/tuned/wide": {"batch": 1, "features": 1031},
    "check/tuned/plain": {"batch": 5, "features": 129, "normalized": False},
    "check/tuned/fp16": {"batch": 7, "features": 65, "dtype": "float16"},
    "check/tuned/2d/bf16": {"dimensions": 2, "batch": 3, "features": 33, "dtype": "bfloat16"},
    "count": {"batch": 256, "features": 64},
    "default": {}, "2d/4096x512": {"dimensions": 2},
}  # fmt: skip
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


def library_source(x, y, w, gradient, normalized):  # what the layer's published kernels are compared with
    return gradients(compiled(published.sgp, x, normalized), x, y, w, gradient, normalized)


def yardstick_add(x, y, w, gradient, normalized):  # moves 8 u and computes next to nothing
    _out = torch.add(x, y)  # 3 u, as much as forward
    return torch.add(x, y), gradient.clone(), w.clone()  # 3 u and 2 u


def cost(x, y, w, gradient, normalized):
    return {"dram_bytes": 8 * x.nbytes + 3 * w.nbytes}  # 3 u forward, 5 u back: read x, y, gradient, write dx, dy


def setup(x, y, w, gradient, normalized):
    dimensions = formulas.algebra_of(x).dimensions
    return {"table": formulas.cayley(dimensions).to(w)}  # [i, j, k, path]: what e_i e_j has of e_k by this path


def dense(x, y, w, normalized, table):
    gate, normalize = formulas.gate, formulas.normalize
    product = torch.einsum("np,ijkp,ibn,jbn->kbn", w, table, gate(x), gate(y))
    return normalize(product) if normalized else product


def run(x, y, w, gradient, normalized, table):
    return gradients(partial(dense, table=table), x, y, w, gradient, normalized)
