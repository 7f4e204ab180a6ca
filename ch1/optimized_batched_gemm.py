"""40 products of 128 x 128 x 128 in one cuBLAS call: one launch, and enough work in it for the whole GPU.

The matrices lie one behind the other, [40, 128, 128], so a start, a stride and a count say where all of them are.
CuPy hands three-dimensional arrays to cublasGemmStridedBatchedEx, which runs the 40 products as one grid.

Predict before you measure: the FLOPs are the same and so are the bytes; what is gone is 39 times the CPU's time for a
call. From which matrix size on would the two versions be equally fast?
"""

import cupy
import numpy

CLOCK = "wall"  # issuing the calls is what is measured


def inputs(batch=40, m=128, n=128, k=128, device="cuda"):
    xp = numpy if device == "cpu" else cupy
    a = xp.random.standard_normal((batch, m, k)).astype(xp.float32)
    b = xp.random.standard_normal((batch, k, n)).astype(xp.float32)
    return {"a": a, "b": b, "out": xp.zeros((batch, m, n), xp.float32)}


def cost(a, b, out):
    flops = 2 * out.size * a.shape[2]  # CuPy multiplies float32 in float32: TF32 only where CUPY_TF32=1 asks for it
    return {"fp32_flops": flops, "dram_bytes": a.nbytes + b.nbytes + out.nbytes}


def run(a, b, out):
    xp = cupy.get_array_module(a)
    xp.matmul(a, b, out=out)
    return out
