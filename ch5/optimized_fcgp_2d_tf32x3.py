"""Fully connected geometric product, 2D: float32 out of three TF32 products, 3 times the FLOPs at 7 times the rate.

A tensor core takes 10 bits of a float32's fraction. So each operand is split into two TF32 numbers, what it is rounded
to and what that leaves, and of their four products the smallest is left out:

    (a + a') (b + b') = a b + a b' + a' b + a' b'     a' and b' up to 2^-11 of a and b, so a' b' up to 2^-22

which float32, with a rounding of 2^-24 for each product and sum, hardly notices: the answer is judged as float32, like
the baseline's. Sums of more than 1024 terms are made in parts: tensor cores cut off what float32 rounds, and that adds
up. By an H200's datasheet

    CUDA cores      30 GFLOP at 67 TFLOP/s      0.45 ms
    tensor cores    90 GFLOP at 495 TFLOP/s     0.18 ms     a third of the limit beside the time

z is written as its two numbers by the kernel that makes it, and multiplied three times; half of the batch at a time, as
two numbers take twice the memory of one. u is what x has (32 MiB):

    z, written twice, read three times               17.5 u     3.5 u each
    x and y twice; out, in such parts, normalized    13.0 u     in all 30.5 u, 0.21 ms

16-bit tensors have nothing to split: for them this is `optimized_fcgp_2d.py`.

Predict before you measure: how much faster than that? What would two TF32 products, without a' b, be worth?
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


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(2, batch, features, dtype, device), "normalized": normalized}


def reference(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)


def library(x, y, w_weight, normalized):
    return compiled(formulas.fcgp, x, normalized)(x, y, w_weight, normalized)


def cost(x, y, w_weight, normalized):
    return connected.products_cost(x, w_weight)


def run(x, y, w_weight, normalized):
    return fcgp.forward(x, y, w_weight, normalized, "tf32x3")[0]
