"""Fully connected geometric product and its gradients by the library: 6 batched products, 53 tensors move in 3D.

Problem: autograd through `optimized_fcgp_backward_by_grade.py` keeps z, and has kernels for each term, both ways.
Idea: `clifford.fcgp` does the same products, two grades at a time, as `optimized_fcgp_tuned.py` does, and

    z is formed again     to keep it would cost 5.5 u of memory (2D: 3.5 u); dz then takes its place
    one kernel            reads all of dz and adds every term's share to dx and dy in registers, with the gates
    many FLOPs            float32 is made of three TF32 products (`optimized_fcgp_tf32x3.py`), here for z, W and out's
                          gradient: from 60 GFLOP on, as measured

Cost: u is the bytes of x (64 MiB of float32, in 2D 32 MiB). With float32 products

                                                3D       2D
    forward                                    18 u     14 u
    out's gradient through the normalization    3 u      3 u
    x and y, twice, z written and read for dW  15 u     11 u
    dout twice, dz written and read            13 u      9 u
    x and y, dx and dy                          4 u      4 u
    in all                                     53 u     41 u

Three TF32 products read and write dz five times, 27.5 u where it was 5.5 (2D: 17.5 u, 3.5), for 1.7 ms of FLOPs instead
of 4.2 ms. A sum over N features is 2 N FLOPs for 8 bytes: 128 a byte at N = 512, 256 at N = 1024; an H200's ridge in
TF32 is at 495 / 4.8 = 103. `clifford.ops.fcgp` is these calls for autograd.
Predict: which of the two sizes gains more over `optimized_fcgp_backward_by_grade.py`, N = 512 or N = 1024?
"""

import fcgp_common
from clifford import fcgp

VERSUS = "by_grade"
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    found = fcgp_common.drawn(dimensions, batch, features, dtype, device, ("x", "y", "gradient"))
    return {**found, "normalized": normalized}


def run(x, y, gradient, w_weight, normalized):
    x, y, gradient, w_weight = (t.contiguous() for t in (x, y, gradient, w_weight))
    precision = fcgp_common.precision(x, w_weight)
    out, root = fcgp.forward(x, y, w_weight, normalized, precision)
    return fcgp.backward(gradient, x, y, w_weight, out, root, precision)
