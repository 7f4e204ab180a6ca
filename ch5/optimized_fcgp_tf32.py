"""Fully connected geometric product, one TF32 product an element: 7 times float32's rate, 10 bits of fraction.

As `optimized_fcgp.py`, with cuBLAS allowed to multiply float32 on the tensor cores: z and W stay float32 in memory, are
taken as TF32 (8 bits of exponent, 10 of fraction), and added up in float32. W is turned first: Hopper's tensor cores
want TF32 operands whose neighbours along the sum are neighbours in memory. A factor that is rounded so is off by up to
2^-11 of itself, or 2^-10 if it is cut; float32's by 2^-24 (the notebook computes what becomes of a product). That is
another precision, labelled as that, never on unless asked for. By an H200's datasheet

    3D    94 GFLOP at 495 TFLOP/s    0.19 ms    18 u at 4.8 TB/s    0.25 ms     z and the tensors, as with float32
    2D    30 GFLOP                   0.06 ms    14 u                0.10 ms

What was hidden behind the arithmetic is now the longer part. 16-bit tensors are multiplied as they are.

Predict before you measure: how much faster than the three products of `optimized_fcgp_tf32x3.py`, which is nearly
float32? Is z in memory still cheap?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

PRECISION = "tf32"
VERSUS = "tf32x3"


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def reference(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)


def library(x, y, w_weight, normalized):
    return compiled(formulas.fcgp, x, normalized)(x, y, w_weight, normalized)


def library_tf32(x, y, w_weight, normalized):  # in this file's precision: the same work
    with fcgp.float32_in("tf32", x.dtype):
        return compiled(formulas.fcgp, x, normalized, "tf32")(x, y, w_weight, normalized)


def cost(x, y, w_weight, normalized):
    return connected.products_cost(x, w_weight)


def run(x, y, w_weight, normalized):
    x, y, w_weight = (each.contiguous() for each in (x, y, w_weight))
    return fcgp.forward(x, y, w_weight, normalized, "tf32")[0]
