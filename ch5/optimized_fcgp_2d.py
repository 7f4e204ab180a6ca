"""Fully connected geometric product, 2D: two batched matrix products and a few kernels move 14 tensors, not 56.

All blades of an output grade c are reached by the same K_c paths. With what is to be multiplied, z, having the blades
below one another and the paths side by side, and their matrices below one another:

    out_c = z_c @ W_c     [|c| B, K_c N] @ [K_c N, N]     |c| = 1, 2, 1     K_c = 3, 4, 3

14 products of B x N by N x N are 3 of as many FLOPs, and what was added up in memory is now in the registers of cuBLAS.
Grades 0 and 2 have as many blades and paths: their products are one batched one, for 4096 x 512 are 64 tiles of 128 x
256, and an H200 has 132 SMs. Both gates are one factor of z, as each of its terms has one x and one y: a kernel reads x
and y and writes the z of grades 0 and 2, then that of grade 1 in its place. u is what x has (32 MiB of float32):

    x and y, twice                   4.0 u
    z, written and read              7.0 u     14 of them, 4 to a u; in memory at a time: 2 u
    out, and normalized in place     3.0 u     in all 14 u

By its datasheet an H200 needs 0.10 ms for those and 0.45 ms for 30 GFLOP in float32 ("ieee": on the CUDA cores, all 24
bits). The limit beside the time is that of TF32, see connected.py, of which this can reach 14 %.

Predict before you measure: how much faster than `baseline_fcgp_2d.py`, and than torch.compile, which has the same
FLOPs? And in 16 bits, at 989 TFLOP/s?
"""

import connected
from clifford import fcgp
from clifford import reference as formulas
from compiled import compiled

SIZES = {
    "check": {"batch": 5, "features": 31}, "check/row": {"batch": 1, "features": 131},
    "check/one": {"batch": 67, "features": 1, "dtype": "float16", "normalized": False},
    "check/plain": {"batch": 19, "features": 9, "normalized": False},
    "check/fp16": {"batch": 5, "features": 33, "dtype": "float16"},
    "default": {}, "plain/4096x512": {"normalized": False},
    "types/4096x512/fp16": {"dtype": "float16"}, "types/4096x512/bf16": {"dtype": "bfloat16"},
    "sweep/1024x128": {"batch": 1024, "features": 128}, "sweep/1024x512": {"batch": 1024, "features": 512},
    "sweep/1024x1024": {"batch": 1024, "features": 1024}, "sweep/4096x128": {"batch": 4096, "features": 128},
    "sweep/4096x512": {"batch": 4096, "features": 512}, "sweep/4096x1024": {"batch": 4096, "features": 1024},
}  # fmt: skip


def inputs(batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**connected.drawn(2, batch, features, dtype, device), "normalized": normalized}


def reference(x, y, w_weight, normalized):
    return formulas.fcgp(x, y, w_weight, normalized)


def library(x, y, w_weight, normalized):
    return compiled(formulas.fcgp, x, normalized)(x, y, w_weight, normalized)


def cost(x, y, w_weight, normalized):
    return connected.products_cost(x, w_weight)


def run(x, y, w_weight, normalized):
    return fcgp.forward(x, y, w_weight, normalized)[0]
