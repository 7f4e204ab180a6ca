"""Fully connected geometric product, 3D: 44 matrix products one by one, 273 kernels that move 87 tensors.

A path is a triple of grades, such as vector times vector giving a bivector; each of the 20 has a matrix W[p]. To blade
k, what the path p gives is multiplied by it, with s_ij = +1 or -1 and the gated xh, yh (B, N) for each blade:

    out_k = sum over the paths p to k of (sum over i, j of s_ij xh_i yh_j) @ W[p]

44 pairs of k and p, 44 products of B x N by N x N. Written as it is said, a kernel an operation, all of them through
memory. u is what x has, 8 blades (64 MiB of float32 at B = 4096, N = 512):

    gates of x and y                  8.0 u
    products of blades, their sums   42.5 u     64 terms
    matrix products                  11.7 u     read their sum, write what comes of it, read W[p]
    adding up, side by side          17.5 u
    normalization                     7.0 u     in all 87 u, where x, y and out are 3

And 44 * 2 * B * N * N = 94 GFLOP. By its datasheet an H200 does 67 TFLOP/s in float32 and moves 4.8 TB/s: 1.4 ms and
1.2 ms, one after the other.

Predict before you measure: torch.compile (the column "library") makes few kernels of all but the matrix products.
Which of the two times can it shorten?
"""

import connected
from clifford import reference as formulas
from compiled import compiled

SIZES = {
    "check": {"batch": 5, "features": 31}, "check/row": {"batch": 1, "features": 67},
    "check/one": {"batch": 67, "features": 1, "dtype": "float16", "normalized": False},
    "check/plain": {"batch": 19, "features": 5, "normalized": False},
    "check/fp16": {"batch": 3, "features": 33, "dtype": "float16"},
    "default": {}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x512": {"batch": 1024, "features": 512},
    "sweep/1024x1024": {"batch": 1024, "features": 1024}, "sweep/4096x128": {"batch": 4096, "features": 128},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
}  # fmt: skip


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(3, batch, features, dtype, device), "normalized": normalized}


def reference(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)


def library(x, y, w_weight, normalized):
    return compiled(formulas.fcgp, x, normalized)(x, y, w_weight, normalized)


def cost(x, y, w_weight, normalized):
    return connected.products_cost(x, w_weight)


def run(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)
