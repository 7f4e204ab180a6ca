"""Fully connected geometric product by the library: two batched products and a few kernels move 18 tensors in 3D.

Problem: `optimized_fcgp_tf32x3.py` forms z with an operation for each term, and copies, splits and reads it.
Idea: `clifford.fcgp` does the same products, and

    one kernel for z     it reads x and y and writes z with its gates where the product reads it, split if it must be
    batches of grades    grades c and n - c have products of the same shape, so they run as one batched product: one
                         blade of 4096 x 512 has only 64 tiles of 128 x 256, and an H200 has 132 SMs
    less memory          z of two grades takes the place of that of the others; split, half of the batch comes at a time
    few FLOPs            below 20 GFLOP float32 stays on the CUDA cores: there the split's bytes cost more, as measured

Cost: u is the bytes of x (64 MiB of float32, in 2D 32 MiB):

                                       float32              three TF32 products
                                      3D        2D           3D        2D
    x and y, twice                   4.0 u     4.0 u        4.0 u     4.0 u
    z, written and read             11.0 u     7.0 u       27.5 u    17.5 u     written in two parts, read three times
    out, and normalized in place     3.0 u     3.0 u       10.5 u     9.0 u
    in all                            18 u      14 u         42 u    30.5 u     0.25 ms and 0.59 ms in 3D

Predict: `optimized_fcgp_tf32.py` has one TF32 product and 18 u. If the times of FLOPs and bytes add up (three products:
0.57 ms and 0.59 ms), how many times as fast is it?
"""

import fcgp_common
from clifford import fcgp

VERSUS = "tf32x3"


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def run(x, y, w_weight, normalized):
    x, y, w_weight = (t.contiguous() for t in (x, y, w_weight))
    return fcgp.forward(x, y, w_weight, normalized, fcgp_common.precision(x, w_weight))[0]
