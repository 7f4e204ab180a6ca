"""Fully connected geometric product, 2D, and its gradients in 6 batched matrix products: 39 tensors move, not 164.

Forward as in `optimized_fcgp_2d.py`, a product for each grade c, two grades at a time; backward two of the same size,
with z made again, as to keep it would cost 3.5 u of memory:

    dz_c = dout_c @ W_c^T     [|c| B, N] @ [N, K_c N]
    dW_c = z_c^T @ dout_c     [K_c N, |c| B] @ [|c| B, N]     over the batch by cuBLAS: no atomics

dz takes the place of z, two grades at a time; then one kernel reads it whole and gives every term's share to dx and
dy, in registers, gates and their gradients included. u is what x has (32 MiB of float32):

    forward                                      14 u
    out's gradient through the normalization       3 u
    x and y, z written and read for dW             9 u
    dout twice, dz written and read                9 u
    x and y, dx and dy                             4 u     in all 39 u

By its datasheet an H200 needs 90 GFLOP / 67 TFLOP/s = 1.3 ms in float32, and 0.27 ms for the bytes.
`clifford.ops.fcgp` is these two calls for autograd.

Predict before you measure: how much faster than `baseline_fcgp_2d_backward.py`, and than torch.compile? Which of the
two times decides?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

SIZES = {
    "check": {"batch": 5, "features": 31}, "check/row": {"batch": 1, "features": 131},
    "check/one": {"batch": 67, "features": 1, "dtype": "float16", "normalized": False},
    "check/plain": {"batch": 19, "features": 9, "normalized": False},
    "check/fp16": {"batch": 5, "features": 33, "dtype": "float16"},
    "default": {}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x512": {"batch": 1024, "features": 512},
    "sweep/1024x1024": {"batch": 1024, "features": 1024}, "sweep/4096x128": {"batch": 4096, "features": 128},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
}  # fmt: skip
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(2, batch, features, dtype, device, ("x", "y", "gradient")), "normalized": normalized}


def reference(x, y, gradient, w_weight, normalized):
    return formulas.fcgp_backward(gradient, x, y, w_weight, normalized)


def library(x, y, gradient, w_weight, normalized):
    product = compiled(formulas.fcgp, x, normalized)
    return connected.gradients(lambda *tensors: product(*tensors, normalized), gradient, x, y, w_weight)


def cost(x, y, gradient, w_weight, normalized):
    return connected.gradients_cost(x, w_weight)


def run(x, y, gradient, w_weight, normalized):
    out, root = fcgp.forward(x, y, w_weight, normalized)
    return fcgp.backward(gradient, x, y, w_weight, out, root)
