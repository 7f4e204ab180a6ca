"""40 products of 128 x 128 x 128 in one cuBLAS call: one launch, and enough work in it for the whole GPU.

Problem: 40 calls for 40 small products: the GPU waits for the CPU.

Idea: the matrices lie one behind the other, [40, 128, 128]. So an address, a stride and a count describe them all. CuPy
hands three-dimensional arrays to cublasGemmStridedBatchedEx, which runs the 40 products as one grid.

Cost: all matrices must have one shape and lie at equal distances. FLOPs and bytes stay the same.

Predict: suppose a call takes the CPU 15 us, and one product on its own runs at 50 TFLOP/s. From which n on does a
product of n x n x n take the GPU as long as its call takes the CPU, so that 40 single calls lose nothing?
"""

import cupy
import numpy

CLOCK = "wall"  # issuing the calls is what is measured


def inputs(batch=40, m=128, n=128, k=128, device="cuda"):
    xp = numpy if device == "cpu" else cupy
    a = xp.random.standard_normal((batch, m, k)).astype(xp.float32)
    b = xp.random.standard_normal((batch, k, n)).astype(xp.float32)
    return {"a": a, "b": b, "out": xp.zeros((batch, m, n), xp.float32)}


def run(a, b, out):
    xp = cupy.get_array_module(a)
    xp.matmul(a, b, out=out)
    return out
