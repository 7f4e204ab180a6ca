"""Fully connected geometric product, 3D, and its gradients by autograd: 790 kernels that move 252 tensors.

Forward as in `baseline_fcgp_3d.py`, 44 products of B x N by N x N, each of which has two of its own on the way back:

    out_k += z @ W[p]     dz = dout_k @ W[p]^T     dW[p] += z^T @ dout_k     44 * 6 * B * N * N = 283 GFLOP

What autograd adds is not in the formulas: what a factor's uses bring is added up, one by one. (Blades and matrices are
taken apart once, by `unbind`: x[i] in every product would get a gradient as large as x each time, zeros but for one
blade.) u is what x has, 8 blades (64 MiB of float32 at B = 4096, N = 512):

    forward                                      86.7 u
    matrix products                              23.4 u
    gradients of W[p], summed; into one tensor    1.8 u
    gradients of products' factors, sums        100.0 u     by blade
    gates, normalization                         40.2 u     in all 252 u

where least would be 8: read x and y and write out; read x, y and out's gradient, write dx and dy. By its datasheet an
H200 needs 3.5 ms for 252 u, and 4.2 ms for the FLOPs in float32.

Predict before you measure: torch.compile (the column "library") makes few kernels of all but the matrix products.
Which of the two times can it shorten, and what is left to win then?
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
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(3, batch, features, dtype, device, ("x", "y", "gradient")), "normalized": normalized}


def reference(x, y, gradient, w_weight, normalized):
    return formulas.fcgp_backward(gradient, x, y, w_weight, normalized)


def library(x, y, gradient, w_weight, normalized):
    product = compiled(formulas.fcgp, x, normalized)
    return connected.gradients(lambda *tensors: product(*tensors, normalized), gradient, x, y, w_weight)


def cost(x, y, gradient, w_weight, normalized):
    return connected.gradients_cost(x, w_weight)


def run(x, y, gradient, w_weight, normalized):
    return connected.gradients(lambda *tensors: formulas.fcgp(*tensors, normalized), gradient, x, y, w_weight)
