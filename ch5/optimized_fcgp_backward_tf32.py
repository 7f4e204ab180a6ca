"""Fully connected geometric product and gradients, one TF32 product an element: 7 times the rate, 10 bits.

Problem: three TF32 products (`optimized_fcgp_backward_tuned.py`) take three times the FLOPs of one, and more bytes.
Idea: as `optimized_fcgp_backward_tuned.py`, with cuBLAS allowed to multiply float32 on the tensor cores. z, W and the
gradients stay float32 in memory, are taken as TF32 (10 bits of fraction), and added up in float32. A factor is off by
up to 2^-11 of itself, or 2^-10. This is another precision: it is labelled as such, and is used only where it is asked
for.
Cost: by an H200's datasheet

    3D    283 GFLOP at 495 TFLOP/s    0.57 ms    53 u at 4.8 TB/s    0.74 ms     z, dz and the tensors, as with float32
    2D     90 GFLOP                   0.18 ms    41 u                0.29 ms

Now the bytes take longer than the arithmetic. 16-bit tensors are multiplied as they are, at twice TF32's rate and with
half the bytes.
Predict: how many times as fast as the three products of `optimized_fcgp_backward_tuned.py` is this version?
"""

import fcgp_common
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

PRECISION = "tf32"
VERSUS = "tuned"
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    found = fcgp_common.drawn(dimensions, batch, features, dtype, device, ("x", "y", "gradient"))
    return {**found, "normalized": normalized}


def library_tf32(x, y, gradient, w_weight, normalized):  # in this file's precision: the same work
    product = compiled(formulas.fcgp, x, normalized, "tf32")
    with fcgp.float32_in("tf32", x.dtype):
        return fcgp_common.gradients(lambda *tensors: product(*tensors, normalized), gradient, x, y, w_weight)


def run(x, y, gradient, w_weight, normalized):
    x, y, gradient, w_weight = (each.contiguous() for each in (x, y, gradient, w_weight))
    out, root = fcgp.forward(x, y, w_weight, normalized, "tf32")
    return fcgp.backward(gradient, x, y, w_weight, out, root, "tf32")
