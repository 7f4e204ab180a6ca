"""Fully connected geometric product: float32 out of three TF32 products, 3 times the FLOPs at 7 times the rate.

Problem: float32 products run on the CUDA cores: 67 TFLOP/s by an H200's datasheet. Tensor cores do 495 TFLOP/s in TF32,
but TF32 keeps only 10 bits of a float32's fraction.
Idea: split each operand into two TF32 numbers, the rounded operand and the rest. Of their four products, leave out the
smallest:

    (a + a') (b + b') = a b + a b' + a' b + a' b'     a' and b' up to 2^-11 of a and b, so a' b' up to 2^-22

A float32 product or sum is itself rounded at 2^-24 of its size, so the answer is judged as float32, like the
baseline's. Tensor cores cut off bits that float32 rounds. In a long sum this adds up, so sums of more than 1024 terms
are made in parts.
Cost: by an H200's datasheet
                                           3D                       2D
    CUDA cores      at 67 TFLOP/s          94 GFLOP      1.4 ms     30 GFLOP    0.45 ms
    tensor cores    at 495 TFLOP/s         283 GFLOP    0.57 ms     90 GFLOP    0.18 ms

This can reach a third of the limit beside the time. The kernel that makes z writes its two numbers, and the products
read them three times. Half of the batch is done at a time, since two numbers take twice the memory of one. u is the
bytes of x (64 MiB, in 2D 32 MiB):

    z, written twice, read three times               27.5 u     17.5 u     5.5 u each, or 3.5 u
    x and y twice; out, in such parts, normalized    14.5 u     13.0 u
    in all                                           42.0 u     30.5 u     0.59 ms, 0.21 ms

16-bit tensors have nothing to split: for them this is `optimized_fcgp.py`.
Predict: `optimized_fcgp.py` needs 1.4 ms for its FLOPs and 0.25 ms for its bytes in 3D. If the two times of each
version add up, how many times as fast is this version?
"""

import fcgp_common
from clifford import fcgp

VERSUS = ""


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    return {**fcgp_common.drawn(dimensions, batch, features, dtype, device), "normalized": normalized}


def run(x, y, w_weight, normalized):
    x, y, w_weight = (each.contiguous() for each in (x, y, w_weight))
    return fcgp.forward(x, y, w_weight, normalized, "tf32x3")[0]
