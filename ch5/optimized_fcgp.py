"""Fully connected geometric product: two batched matrix products and a few kernels move 18 tensors in 3D, not 87.

Problem: `baseline_fcgp.py` adds up the results of 44 matrix products in memory.
Idea: the same K_c paths lead to all |c| blades of an output grade c. Let z be the left operands of the products, with
the blades of a grade one below another and the paths side by side. Then one larger product does what |c| K_c did:

    out_c = z_c @ W_c     [|c| B, K_c N] @ [K_c N, N]     3D: |c| = 1, 3, 3, 1     K_c = 4, 6, 6, 4
                                                          2D: |c| = 1, 2, 1        K_c = 3, 4, 3

The FLOPs are the same; the sums over paths now stay in the registers of cuBLAS. Grades c and n - c have products of the
same shape, so they run as one batched product: one blade of 4096 x 512 has only 64 tiles of 128 x 256, and an H200 has
132 SMs. Both gates are one factor of z. One kernel reads x and y and writes the z of the first and the last grade; then
it writes the z of the grades between in the same place.
Cost: u is the bytes of x (64 MiB of float32, in 2D 32 MiB):
                                      3D        2D
    x and y, twice                   4.0 u     4.0 u
    z, written and read             11.0 u     7.0 u     44 of them, 8 to a u (14, 4 to a u); at a time 4.5 u (2 u)
    out, and normalized in place     3.0 u     3.0 u
    in all                            18 u      14 u

By its datasheet an H200 needs 0.25 ms for these bytes and 1.4 ms for 94 GFLOP in float32 on the CUDA cores (2D: 0.10
ms, and 0.45 ms for 30 GFLOP). In 16 bits it does 989 TFLOP/s: 0.1 ms in 3D. The limit beside the time is that of TF32
(see fcgp_common.py), of which float32 can reach 14 %.
Predict: if the two times of each version add up, how many times as fast as `baseline_fcgp.py` is this version in
float32? And in float16, where the bytes are half as many?
"""

import fcgp_common
from clifford import fcgp


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def run(x, y, w_weight, normalized):
    x, y, w_weight = (each.contiguous() for each in (x, y, w_weight))
    return fcgp.forward(x, y, w_weight, normalized)[0]
