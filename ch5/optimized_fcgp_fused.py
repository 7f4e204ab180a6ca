"""Fully connected geometric product, z formed where the product loads it: 5 tensors move, z is formed 8 times.

Problem: in `optimized_fcgp_by_grade.py` z is written to memory and read again: 11 u at least (2D: 7 u).
Idea: a program computes 64 rows and 64 columns of all blades of an output grade. It walks along the features that are
summed over, 16 at a time. It loads that tile of all blades of x and y, forms the z of each path and blade in registers,
and multiplies them by the path's tile of W. z is never in memory. (The kernel is in `clifford/fcgp_fused.py`.)
Cost: read x and y 2 u, write out 1 u, normalize it 2 u: 5 u, where z in memory takes 18 u (`optimized_fcgp_tuned.py`,
2D: 14). But each of the 512 / 64 = 8 tiles of columns, and each of G = 4 grades (2D: 3), loads the same rows of x and y
and forms their z again. The first program reads memory, the others L2. With D blades and at most K = 6 paths (2D: 4):

    G * 64 * 8 programs * (2 * D * 64 + K * 64) * 512 * 4 bytes     5.9 GB at most (2D: 2.4 GB)

against 18 u = 1.2 GB (2D: 0.5 GB) from memory, beside 94 (30) GFLOP. In float32 Triton multiplies a tile of 64 x 64 on
the CUDA cores with code that its compiler makes; cuBLAS has code that is tuned by hand.
Predict: arithmetic limits `optimized_fcgp_tuned.py` in float32. Is this version faster or slower than that? And in
float16, where the products run on tensor cores?
"""

import fcgp_common
from clifford.fcgp_fused import forward_fused

VERSUS = "by_grade"


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def run(x, y, w_weight, normalized):
    x, y, w_weight = (each.contiguous() for each in (x, y, w_weight))
    return forward_fused(x, y, w_weight, normalized)[0]
