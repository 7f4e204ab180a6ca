"""Clifford layer, one operation after the other: in 3D 277 kernels that move 91 tensors for one batch of products.

Problem: a layer has two steps,

    y = x @ L[grade] + bias     a matrix for each of the 4 grades (2D: 3); the bias on the scalar blade only
    out = product of x and y    the gated, weighted geometric product, each grade normalized

The layer is equivariant: rotate x, and out is rotated with it. A bias on a vector would break that, because a constant
vector does not rotate with x. Each operation is a kernel that reads and writes memory.
Cost: u is the bytes of x, 8 blades (64 MiB of float32 at B = 4096, N = 512); in 2D 4 blades, and 99 kernels move 60 u:

           3D       2D
    y      4.6 u    4.8 u     batched product read x, write y; bias; blades into one tensor; 17.2 GFLOP (2D: 8.6)
    out     86 u     56 u     gates, products of blades, weights, sums, squares, each a kernel

By its datasheet an H200 needs 0.26 ms for the FLOPs in float32 (67 TFLOP/s) and 1.3 ms for the bytes (4.8 TB/s), 0.06
ms of them for y; in 2D 0.13 ms and 0.42 ms. At size "fcgp" the product is fully connected: 44 products of B x N by N x
N, 94 GFLOP, 1.4 ms (2D: 14, 30, 0.45 ms).
Predict: if the product of x and y took no time at all, how many times as fast would the layer be?
"""

import fcgp_common
from clifford import reference as formulas
from compiled import compiled

SIZES = {
    "check": {"batch": 2, "features": 7}, "check/2d": {"dimensions": 2, "batch": 3, "features": 7},
    "check/2d/one": {"dimensions": 2, "batch": 1, "features": 1},
    "check/plain": {"batch": 1, "features": 67, "normalized": False},
    "check/2d/fp16": {"dimensions": 2, "batch": 2, "features": 33, "dtype": "float16"},
    "check/fcgp": {"batch": 3, "features": 5, "product": "fcgp"},
    "check/2d/fcgp/plain": {"dimensions": 2, "batch": 1, "features": 9, "product": "fcgp", "normalized": False},
    "check/tuned/plain": {"batch": 67, "features": 5, "normalized": False},
    "count": {"batch": 512, "features": 64},
    "default": {}, "2d/4096x512": {"dimensions": 2}, "fcgp/3d/4096x512": {"product": "fcgp"},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, product="sgp", device="cuda"):
    return {**fcgp_common.layer_drawn(dimensions, batch, features, dtype, product, device), "normalized": normalized}


def reference(x, w_linear, w_bias, w_weight, normalized):
    return formulas.layer(x, w_linear, w_bias, w_weight, normalized)


def library(x, w_linear, w_bias, w_weight, normalized):
    layer = compiled(formulas.layer, x, w_weight.shape, normalized)
    return layer(x, w_linear, w_bias, w_weight, normalized)


def cost(x, w_linear, w_bias, w_weight, normalized):
    return fcgp_common.layer_cost(x, w_linear, w_bias, w_weight)


def run(x, w_linear, w_bias, w_weight, normalized):
    return formulas.layer(x, w_linear, w_bias, w_weight, normalized)
