"""Fully connected geometric product and its gradients: three matrix products for each grade, 12 in 3D instead of 132.

Problem: `baseline_fcgp_backward.py` runs 132 matrix products in 3D and adds up their results in memory.
Idea: forward is `optimized_fcgp_by_grade.py`, one product for each grade c. Autograd through it has two products of the
same size:

    dz_c = dout_c @ W_c^T     [|c| B, N] @ [N, K_c N]
    dW_c = z_c^T @ dout_c     [K_c N, |c| B] @ [|c| B, N]     the sum over the batch is cuBLAS's

Cost: autograd keeps z, 5.5 u (u: the bytes of x, 64 MiB of float32; in 2D 3.5 u), and dz is as large. By its datasheet
an H200 needs 283 GFLOP / 67 TFLOP/s = 4.2 ms in float32 (2D: 90 GFLOP, 1.3 ms).
Predict: the FLOPs are the baseline's. Which of its bytes are left out here?
"""

import fcgp_common
from optimized_fcgp_by_grade import run as product

TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    found = fcgp_common.drawn(dimensions, batch, features, dtype, device, ("x", "y", "gradient"))
    return {**found, "normalized": normalized}


def run(x, y, gradient, w_weight, normalized):
    return fcgp_common.gradients(lambda *tensors: product(*tensors, normalized), gradient, x, y, w_weight)
