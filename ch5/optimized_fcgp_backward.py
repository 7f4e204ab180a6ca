"""Fully connected geometric product and its gradients in 6 batched matrix products: 53 tensors move in 3D, not 252.

Problem: `baseline_fcgp_backward.py` runs 132 matrix products in 3D and adds up their results in memory.
Idea: forward is `optimized_fcgp.py`, one product for each grade c, two grades at a time. Backward has two products of
the same size. z is formed again: to keep it would cost 5.5 u of memory (2D: 3.5 u).

    dz_c = dout_c @ W_c^T     [|c| B, N] @ [N, K_c N]
    dW_c = z_c^T @ dout_c     [K_c N, |c| B] @ [|c| B, N]     over the batch by cuBLAS: no atomics

dz takes the place of z, two grades at a time. Then one kernel reads all of it and adds every term's share to dx and dy
in registers, with the gates and their gradients.
Cost: u is the bytes of x (64 MiB of float32, in 2D 32 MiB):

                                                3D       2D
    forward                                    18 u     14 u
    out's gradient through the normalization    3 u      3 u
    x and y, twice, z written and read for dW  15 u     11 u
    dout twice, dz written and read            13 u      9 u
    x and y, dx and dy                          4 u      4 u
    in all                                     53 u     41 u

By its datasheet an H200 needs 283 GFLOP / 67 TFLOP/s = 4.2 ms in float32, and 0.74 ms for the bytes (2D: 90 GFLOP, 1.3
ms and 0.29 ms). `clifford.ops.fcgp` is these two calls for autograd.
Predict: the baseline needs 4.2 ms for its FLOPs and 3.5 ms for its bytes. If the two times of each version add up, how
many times as fast is this version?
"""

import fcgp_common
from clifford import fcgp

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    found = fcgp_common.drawn(dimensions, batch, features, dtype, device, ("x", "y", "gradient"))
    return {**found, "normalized": normalized}


def run(x, y, gradient, w_weight, normalized):
    x, y, gradient, w_weight = (each.contiguous() for each in (x, y, gradient, w_weight))
    out, root = fcgp.forward(x, y, w_weight, normalized)
    return fcgp.backward(gradient, x, y, w_weight, out, root)
