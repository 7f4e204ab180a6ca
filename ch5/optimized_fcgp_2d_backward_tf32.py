"""Fully connected geometric product and gradients, 2D, one TF32 product an element: 7 times the rate, 10 bits.

As `optimized_fcgp_2d_backward.py`, with cuBLAS allowed to multiply float32 on the tensor cores: z, W and the gradients
stay float32 in memory, are taken as TF32 (10 bits of fraction), and added up in float32. A factor is off by up to 2^-11
of itself, or 2^-10: another precision, labelled as that, never on unless asked for. By an H200's datasheet

    90 GFLOP at 495 TFLOP/s     0.18 ms
    39 u at 4.8 TB/s           0.27 ms     z, dz and the tensors, as with float32

So it is the bytes now that take longer. 16-bit tensors are multiplied as they are.

Predict before you measure: how much faster than the three products of `optimized_fcgp_2d_backward_tf32x3.py`? And what
would 16 bits win, at twice the rate and half the bytes?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

PRECISION = "tf32"
VERSUS = "tf32x3"
SIZES = {
    "check": {"batch": 5, "features": 31}, "check/row": {"batch": 1, "features": 131},
    # one feature in 16 bits: in TF32 nothing would average the error of its few weights
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


def library_tf32(x, y, gradient, w_weight, normalized):  # in this file's precision: the same work
    product = compiled(formulas.fcgp, x, normalized, "tf32")
    with fcgp.float32_in("tf32", x.dtype):
        return connected.gradients(lambda *tensors: product(*tensors, normalized), gradient, x, y, w_weight)


def cost(x, y, gradient, w_weight, normalized):
    return connected.gradients_cost(x, w_weight)


def run(x, y, gradient, w_weight, normalized):
    out, root = fcgp.forward(x, y, w_weight, normalized, "tf32")
    return fcgp.backward(gradient, x, y, w_weight, out, root, "tf32")
