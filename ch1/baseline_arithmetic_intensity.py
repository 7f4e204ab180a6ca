"""A polynomial of 64 M floats in four passes, one float per thread: 2.95 GB moved for 0.54 GFLOP.

Problem: y = (((x * x + c0) * x + c1) * x + c2) * x + c3, one multiply-add per pass. The first pass reads x, the others
read x and y; all write y: 2 + 3 + 3 + 3 = 11 arrays of 256 MiB. That is 8 FLOPs for 44 bytes of each element:

    arithmetic intensity   8 / 44 = 0.18 FLOP per byte

Cost: a GPU with 50 TFLOP/s and 4 TB/s needs 12.5 FLOP per byte before its arithmetic is the limit (the ridge point), 70
times more. So the time is at least 2.95 GB over the memory's bandwidth.

Three variants follow, each one step from the one before: `_unrolled` (four floats per thread), `_vectorized` (16 bytes
per load), `_fused` (one pass).

Predict: an H200's memory moves 4.8 TB/s by its datasheet. How many microseconds do the four passes take at least?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 100_003},  # many blocks, the last one not full, and no multiple of 4
    "default": {"n": 67_108_864},  # 256 MiB of float32: larger than any L2
}
THREADS = 256  # per block
COEFFICIENTS = numpy.array([0.5, -1.25, 0.75, 2.0], dtype=numpy.float32)  # exact in binary, so float64 uses the same

horner = cupy.RawKernel(
    r"""
extern "C" __global__ void horner(const float* x, const float* acc, float* y, float c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = acc[i] * x[i] + c;  // acc and y may be the same array
}
""",
    "horner",
)


def inputs(n=67_108_864, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, n, dtype=cupy.float32)}


def reference(x):
    y = x
    for c in COEFFICIENTS:
        y = y * x + float(c)
    return y


def cost(x):
    # The least: read x, write y, and four multiply-adds. Four separate passes move 11 such arrays instead of 2.
    return {"dram_bytes": 2 * x.nbytes, "fp32_flops": 8 * x.size}


def run(x):
    y = cupy.empty_like(x)
    blocks = -(-x.size // THREADS)
    acc = x
    for c in COEFFICIENTS:
        horner((blocks,), (THREADS,), (x, acc, y, c, numpy.int32(x.size)))
        acc = y
    return y
