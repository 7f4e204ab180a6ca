"""Fully connected geometric product and gradients: float32 out of three TF32 products, at 7 times the rate.

Problem: the float32 products of `optimized_fcgp_backward.py` run on the CUDA cores.
Idea: split each operand into two TF32 numbers and make three of their four products on the tensor cores, as
`optimized_fcgp_tf32x3.py` does, here for z, W and out's gradient. The answer is judged as float32.
Cost: by an H200's datasheet
                                           3D                           2D
    CUDA cores      at 67 TFLOP/s          283 GFLOP         4.2 ms     90 GFLOP         1.3 ms
    tensor cores    at 495 TFLOP/s         3 * 283 GFLOP     1.7 ms     3 * 90 GFLOP    0.55 ms

This can reach a third of the limit beside the time. Three products into one result also cost bytes. out and dW are
small beside what is summed over. But dz is as large as z, 5.5 u (2D: 3.5 u), and it is written once, then twice read,
added to and written:

    dz = dout' @ W^T;  dz += dout @ W'^T;  dz += dout @ W^T     5 * 5.5 = 27.5 u, where it was 5.5 (2D: 17.5 u, 3.5)

A sum over N features is 2 N FLOPs for 8 bytes read and written: 128 a byte at N = 512, 256 at N = 1024. An H200's ridge
in TF32 is at 495 / 4.8 = 103.
Predict: the ratio over `optimized_fcgp_backward.py` is at most 4.2 / 1.7 = 2.5. How large is it at N = 512? Is it
larger or smaller at N = 1024?
"""

import fcgp_common
from clifford import fcgp

VERSUS = ""
TOLERANCE = (0.1, 0.5)  # in 16 bits a term is rounded at its own size, and may be many times as large as the sum


def inputs(dimensions=3, batch=4096, features=512, dtype="float32", normalized=True, device="cuda"):
    found = fcgp_common.drawn(dimensions, batch, features, dtype, device, ("x", "y", "gradient"))
    return {**found, "normalized": normalized}


def run(x, y, gradient, w_weight, normalized):
    x, y, gradient, w_weight = (each.contiguous() for each in (x, y, gradient, w_weight))
    out, root = fcgp.forward(x, y, w_weight, normalized, "tf32x3")
    return fcgp.backward(gradient, x, y, w_weight, out, root, "tf32x3")
