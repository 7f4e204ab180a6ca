"""Fully connected geometric product and gradients, 2D: float32 out of three TF32 products, at 7 times the rate.

Each operand is split into two TF32 numbers, what it is rounded to and what that leaves, and three of their four
products are made on the tensor cores, of z, W and now also of out's gradient (`optimized_fcgp_2d_tf32x3.py`). The
answer is judged as float32, like the baseline's. By an H200's datasheet

    CUDA cores      90 GFLOP at 67 TFLOP/s          1.3 ms
    tensor cores    3 * 90 GFLOP at 495 TFLOP/s     0.55 ms     a third of the limit beside the time

Three products into one result cost bytes as well. out and dW are small beside what is summed over; but dz is as large
as z, 3.5 u, and is written, then twice read, added to and written:

    dz = dout' @ W^T;  dz += dout @ W'^T;  dz += dout @ W^T     5 * 3.5 = 17.5 u, where it was 3.5

Sums over N = 512 features are that short: 2 * 512 FLOPs for 8 bytes read and written are 128 a byte, and an H200's
ridge in TF32 is at 495 / 4.8 = 103.

Predict before you measure: how near to 3 products' time of tensor cores does it come, and at N = 1024? How would one
product over 3 * 512 do?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

VERSUS = ""
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
    out, root = fcgp.forward(x, y, w_weight, normalized, "tf32x3")
    return fcgp.backward(gradient, x, y, w_weight, out, root, "tf32x3")
