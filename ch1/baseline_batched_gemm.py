"""40 products of 128 x 128 x 128 in 40 cuBLAS calls: the GPU computes for microseconds and waits for the next call.

Problem: one product is 2 * 128^3 = 4.2 MFLOP on 192 KiB. Its result of 128 x 128 is work for one or a few of the GPU's
multiprocessors. The CPU needs longer to issue a product than the GPU needs to compute it.

Cost: a launch takes the CPU perhaps 2 to 5 us. CuPy's Python around it makes 10 to 30 us of it, and 40 calls take 40
times that. All 40 products together are 168 MFLOP: about 3 us at 50 TFLOP/s. (`library_mm` makes the same 40 calls
through torch, whose way from Python to the launch is another one.)

Predict: what is the largest ratio that one call for all products (`optimized_batched_gemm_strided.py`) could reach, if
such a call took no longer than one of the 40?
"""

import cupy
import numpy
import torch

CLOCK = "wall"  # issuing the calls is what is measured
SIZES = {
    "check": {"batch": 3, "m": 127, "n": 129, "k": 65},
    "check/one": {"batch": 1, "m": 1, "n": 1, "k": 1},
    "check/129": {"batch": 7, "m": 129, "n": 1, "k": 127},
    "default": {"batch": 40, "m": 128, "n": 128, "k": 128},
}


def inputs(batch=40, m=128, n=128, k=128, device="cuda"):
    xp = numpy if device == "cpu" else cupy
    a = xp.random.standard_normal((batch, m, k)).astype(xp.float32)
    b = xp.random.standard_normal((batch, k, n)).astype(xp.float32)
    return {"a": a, "b": b, "out": xp.zeros((batch, m, n), xp.float32)}


def library_mm(a, b, out):
    for x, y, z in zip(*(torch.from_dlpack(matrices) for matrices in (a, b, out)), strict=True):  # the same memory
        torch.mm(x, y, out=z)
    return out


def cost(a, b, out):
    flops = 2 * out.size * a.shape[2]  # CuPy multiplies float32 in float32: TF32 only where CUPY_TF32=1 asks for it
    return {"fp32_flops": flops, "dram_bytes": a.nbytes + b.nbytes + out.nbytes}


def run(a, b, out):
    xp = cupy.get_array_module(a)
    for i in range(len(a)):
        xp.matmul(a[i], b[i], out=out[i])
    return out
