"""Clifford layer, 2D, an operation after the other: 99 kernels that move 60 tensors around one batch of products.

    y = x @ L[grade] + bias     a matrix for each of the 3 grades; the bias on the scalar blade only, as others turn
    out = product of x and y    the gated, weighted geometric product, each grade normalized

No bias on a vector: rotate x, and out must be rotated with it, but a constant vector stays where it is. u is what x
has, 4 blades (32 MiB of float32 at B = 4096, N = 512):

    y      4.8 u     batched product read x, write y; bias; blades side by side again     8.6 GFLOP
    out    56 u      gates, products of blades, weights, sums, squares, each a kernel

By its datasheet an H200 needs 0.13 ms for the FLOPs in float32 (67 TFLOP/s) and 0.42 ms for the bytes (4.8 TB/s).

Size "fcgp": the product is fully connected, 14 products of B x N by N x N, 30 GFLOP, 0.45 ms.

Predict before you measure: if the product of x and y took no time at all, how much faster would the layer be? How
much of that is left to win over torch.compile (the column "library")?
"""

import connected
from clifford import reference as formulas
from compiled import compiled

SIZES = {
    "check": {"batch": 5, "features": 7}, "check/one": {"batch": 1, "features": 1},
    "check/row": {"batch": 1, "features": 67}, "check/plain": {"batch": 67, "features": 5, "normalized": False},
    "check/fp16": {"batch": 3, "features": 33, "dtype": "float16"},
    "check/fcgp": {"batch": 3, "features": 5, "product": "fcgp"},
    "check/fcgp/plain": {"batch": 1, "features": 9, "product": "fcgp", "normalized": False},
    "default": {}, "fcgp/4096x512": {"product": "fcgp"}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x512": {"batch": 1024, "features": 512},
    "sweep/1024x1024": {"batch": 1024, "features": 1024}, "sweep/4096x128": {"batch": 4096, "features": 128},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(batch=4096, features=512, dtype="float32", normalized=True, product="sgp", device="cuda"):
    return {**connected.layer_drawn(2, batch, features, dtype, product, device), "normalized": normalized}


def reference(x, w_linear, w_bias, w_weight, normalized):
    return formulas.layer(x, w_linear, w_bias, w_weight, normalized)


def library(x, w_linear, w_bias, w_weight, normalized):
    layer = compiled(formulas.layer, x, w_weight.shape, normalized)
    return layer(x, w_linear, w_bias, w_weight, normalized)


def cost(x, w_linear, w_bias, w_weight, normalized):
    return connected.layer_cost(x, w_linear, w_bias, w_weight)


def run(x, w_linear, w_bias, w_weight, normalized):
    return formulas.layer(x, w_linear, w_bias, w_weight, normalized)
