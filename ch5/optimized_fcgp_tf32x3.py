"""Fully connected geometric product: float32 out of three TF32 products, 3 times the FLOPs at 7 times the rate.

A tensor core takes 10 bits of a float32's fraction. So each operand is split into two TF32 numbers, what it is rounded
to and what that leaves, and of their four products the smallest is left out:

    (a + a') (b + b') = a b + a b' + a' b + a' b'     a' and b' up to 2^-11 of a and b, so a' b' up to 2^-22

which float32, with a rounding of 2^-24 for each product and sum, hardly notices: the answer is judged as float32, like
the baseline's. Sums of more than 1024 terms are made in parts: tensor cores cut off what float32 rounds, and that adds
up. By an H200's datasheet
                                           3D                       2D
    CUDA cores      at 67 TFLOP/s          94 GFLOP      1.4 ms     30 GFLOP    0.45 ms
    tensor cores    at 495 TFLOP/s         283 GFLOP    0.57 ms     90 GFLOP    0.18 ms

a third of the limit beside the time. z is written as its two numbers by the kernel that makes it, and multiplied three
times; half of the batch at a time, as two numbers take twice the memory of one. u is what x has (64 MiB, in 2D 32 MiB):

    z, written twice, read three times               27.5 u     17.5 u     5.5 u each, or 3.5 u
    x and y twice; out, in such parts, normalized    14.5 u     13.0 u
    in all                                           42.0 u     30.5 u     0.59 ms, 0.21 ms

16-bit tensors have nothing to split: for them this is `optimized_fcgp.py`.

Predict before you measure: how much faster than that? What would two TF32 products, without a' b, be worth?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

VERSUS = ""


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def reference(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)


def library(x, y, w_weight, normalized):
    return compiled(formulas.fcgp, x, normalized)(x, y, w_weight, normalized)


def cost(x, y, w_weight, normalized):
    return connected.products_cost(x, w_weight)


def run(x, y, w_weight, normalized):
    x, y, w_weight = (each.contiguous() for each in (x, y, w_weight))
    return fcgp.forward(x, y, w_weight, normalized, "tf32x3")[0]
