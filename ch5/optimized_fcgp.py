"""Fully connected geometric product: two batched matrix products and a few kernels move 18 tensors in 3D, not 87.

All blades of an output grade c are reached by the same K_c paths. With what is to be multiplied, z, having the blades
below one another and the paths side by side, and their matrices below one another:

    out_c = z_c @ W_c     [|c| B, K_c N] @ [K_c N, N]     3D: |c| = 1, 3, 3, 1     K_c = 4, 6, 6, 4
                                                          2D: |c| = 1, 2, 1        K_c = 3, 4, 3

44 products of B x N by N x N (2D: 14) are 4 (3) of as many FLOPs, and what was added up in memory is now in the
registers of cuBLAS. Grades c and n - c have as many blades and paths: their products are one batched one, for 4096 x
512 are 64 tiles of 128 x 256, and an H200 has 132 SMs. Both gates are one factor of z, as each of its terms has one x
and one y: a kernel reads x and y and writes the z of the first and the last grade, then that of those between in its
place. u is what x has (64 MiB of float32, in 2D 32 MiB):
                                      3D        2D
    x and y, twice                   4.0 u     4.0 u
    z, written and read             11.0 u     7.0 u     44 of them, 8 to a u (14, 4 to a u); at a time 4.5 u (2 u)
    out, and normalized in place     3.0 u     3.0 u
    in all                            18 u      14 u

By its datasheet an H200 needs 0.25 ms for those and 1.4 ms for 94 GFLOP in float32 (2D: 0.10 ms, and 0.45 ms for 30
GFLOP; "ieee": on the CUDA cores, all 24 bits). The limit beside the time is that of TF32, see connected.py, of which
this can reach 14 %.

Predict before you measure: how much faster than `baseline_fcgp.py`, and than torch.compile, which has the same FLOPs?
And in 16 bits, at 989 TFLOP/s?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled


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
    return fcgp.forward(x, y, w_weight, normalized)[0]
