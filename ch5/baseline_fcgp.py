"""Fully connected geometric product: 44 matrix products one by one in 3D, 273 kernels that move 87 tensors.

Problem: a path is a triple of grades, such as vector times vector giving a bivector. Each of the 20 paths (2D: 10) has
a matrix W[p]. With s_ij = +1 or -1 and the gated xh, yh (B, N) of each blade:

    out_k = sum over the paths p to k of (sum over i, j of s_ij xh_i yh_j) @ W[p]

There are 44 pairs of k and p (2D: 14), so there are 44 products of B x N by N x N. This version runs the formula as it
stands: each operation is a kernel (2D: 95 of them) that reads and writes memory.
Cost: u is the bytes of x, 8 blades (64 MiB of float32 at B = 4096, N = 512), in 2D 4 blades:

                                       3D        2D
    gates of x and y                  8.0 u    10.0 u
    products of blades, their sums   42.5 u    20.5 u     64 terms, or 16
    matrix products                  11.7 u     7.4 u     read their sum, write their result, read W[p]
    sums of these, into one tensor   17.5 u    11.5 u
    normalization                     7.0 u     6.5 u
    in all                             87 u      56 u     where x, y and out are 3

and 44 * 2 * B * N * N = 94 GFLOP (2D: 30). By its datasheet an H200 does 67 TFLOP/s in float32 and moves 4.8 TB/s: 1.4
ms for the FLOPs and 1.2 ms for the bytes, one after the other (2D: 0.45 ms and 0.39 ms).
Predict: torch.compile (the column "library") makes few kernels of everything except the matrix products. Which of the
two times can it shorten?
"""

import fcgp_common
from clifford import reference as formulas
from compiled import compiled

SIZES = {
    "check": {"dimensions": 2, "batch": 5, "features": 31}, "check/3d": {"batch": 5, "features": 31},
    "check/2d/row": {"dimensions": 2, "batch": 1, "features": 131},
    # one feature in 16 bits: in TF32 nothing would average the error of its few weights
    "check/one": {"batch": 67, "features": 1, "dtype": "float16", "normalized": False},
    "check/plain": {"batch": 19, "features": 5, "normalized": False},
    "check/2d/plain": {"dimensions": 2, "batch": 19, "features": 9, "normalized": False},
    "check/fp16": {"batch": 3, "features": 33, "dtype": "float16"},
    "check/2d/fp16": {"dimensions": 2, "batch": 5, "features": 33, "dtype": "float16"},
    "count": {"batch": 64, "features": 64},
    "default": {}, "2d/4096x512": {"dimensions": 2},
}  # fmt: skip


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def reference(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)


def library(x, y, w_weight, normalized):
    return compiled(formulas.fcgp, x, normalized)(x, y, w_weight, normalized)


def cost(x, y, w_weight, normalized):
    return fcgp_common.products_cost(x, w_weight)


def run(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)
