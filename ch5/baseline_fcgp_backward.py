"""Fully connected geometric product and its gradients by autograd: 790 kernels that move 252 tensors in 3D.

Problem: forward is `baseline_fcgp.py`, 44 products of B x N by N x N (2D: 14). Each has two products on the way back:

    out_k += z @ W[p]     dz = dout_k @ W[p]^T     dW[p] += z^T @ dout_k     44 * 6 * B * N * N = 283 GFLOP (2D: 90)

Autograd also adds up, one by one, the gradients that each use of a factor brings. (Blades and matrices are taken apart
once, by `unbind`. With x[i] in every product, each would bring a gradient as large as x, 0 except in one blade.)
Cost: u is the bytes of x, 8 blades (64 MiB of float32 at B = 4096, N = 512), in 2D 4 blades and 269 kernels:

                                                   3D         2D
    forward                                       86.7 u     55.9 u
    matrix products                               23.4 u     14.9 u
    gradients of W[p], summed; into one tensor     1.8 u      1.0 u
    gradients of products' factors, sums         100.0 u     48.0 u     by blade
    gates, normalization                          40.2 u     44.2 u
    in all                                         252 u      164 u

The least is 8 u: read x and y and write out; read x, y and out's gradient, write dx and dy. By its datasheet an H200
needs 3.5 ms for 252 u, and 4.2 ms for the FLOPs in float32 (2D: 1.1 ms and 1.3 ms).
Predict: torch.compile (the column "library") makes few kernels of everything except the matrix products. If it moved
only 8 u, and the two times add up, how many times as fast as this version could it be?
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
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    found = fcgp_common.drawn(dimensions, batch, features, dtype, device, ("x", "y", "gradient"))
    return {**found, "normalized": normalized}


def reference(x, y, gradient, w_weight, normalized):
    return formulas.fcgp_backward(gradient, x, y, w_weight, normalized)


def library(x, y, gradient, w_weight, normalized):
    product = compiled(formulas.fcgp, x, normalized)
    return fcgp_common.gradients(lambda *tensors: product(*tensors, normalized), gradient, x, y, w_weight)


def cost(x, y, gradient, w_weight, normalized):
    return fcgp_common.gradients_cost(x, w_weight)


def run(x, y, gradient, w_weight, normalized):
    return fcgp_common.gradients(lambda *tensors: formulas.fcgp(*tensors, normalized), gradient, x, y, w_weight)
