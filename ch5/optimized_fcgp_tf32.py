"""Fully connected geometric product, one TF32 product an element: 7 times float32's rate, 10 bits of fraction.

Problem: three TF32 products (`optimized_fcgp_tuned.py`) take three times the FLOPs of one, and more bytes.
Idea: let cuBLAS multiply float32 on the tensor cores once. z and W stay float32 in memory; each factor is taken as TF32
(8 bits of exponent, 10 of fraction), and sums are float32. W is transposed first: Hopper's tensor cores need TF32
operands whose neighbours along the sum are neighbours in memory. A factor is off by up to 2^-11 of itself if it is
rounded, 2^-10 if it is cut; float32's by 2^-24. This is another precision: it is labelled as such, and is used only
where it is asked for.
Cost: by an H200's datasheet

    3D    94 GFLOP at 495 TFLOP/s    0.19 ms    18 u at 4.8 TB/s    0.25 ms     z and the tensors, as with float32
    2D    30 GFLOP                   0.06 ms    14 u                0.10 ms

Now the bytes take longer than the arithmetic. 16-bit tensors are multiplied as they are.
Predict: three products need 0.57 ms for FLOPs and 0.59 ms for 42 u in 3D. If the two times of each version add up, how
many times as fast is this version?
"""

import fcgp_common
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

PRECISION = "tf32"
VERSUS = "tuned"


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def library_tf32(x, y, w_weight, normalized):  # in this file's precision: the same work
    with fcgp.float32_in("tf32", x.dtype):
        return compiled(formulas.fcgp, x, normalized, "tf32")(x, y, w_weight, normalized)


def run(x, y, w_weight, normalized):
    x, y, w_weight = (each.contiguous() for each in (x, y, w_weight))
    return fcgp.forward(x, y, w_weight, normalized, "tf32")[0]
