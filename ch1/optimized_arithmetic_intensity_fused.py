"""A polynomial of 64 M floats in one pass: 0.54 GB moved for the same 0.54 GFLOP, 5.5 times fewer bytes.

Problem: in four passes the value of each element goes out to memory and back three times.

Idea: the value stays in a register between the steps. What is left is the least: read x, write y, 2 arrays of 256 MiB
instead of 11:

    arithmetic intensity   8 / 8 = 1 FLOP per byte, from 8 / 44 = 0.18

The variants before could only move a point of the roofline up, towards the roof. This one moves it to the right.

Cost: the four steps are one kernel now, so a kernel for each combination of steps has to be written.

Predict: with 50 TFLOP/s and 4 TB/s the ridge point is 12.5 FLOP per byte. How many multiply-adds (2 FLOPs each) could
each element of 8 bytes have before arithmetic becomes the limit?
"""

import cupy
import numpy

DEVICE = "cuda"
VERSUS = "vectorized"
THREADS = 256  # per block
COEFFICIENTS = numpy.array([0.5, -1.25, 0.75, 2.0], dtype=numpy.float32)  # exact in binary, so float64 uses the same

horner = cupy.RawKernel(
    r"""
__device__ float polynomial(float x, float4 c) {
    return (((x * x + c.x) * x + c.y) * x + c.z) * x + c.w;  // all four passes, in registers
}

extern "C" __global__ void horner(const float* x, float* y, float c0, float c1, float c2, float c3, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 c = {c0, c1, c2, c3};
    if (i < n / 4) {
        float4 b = ((const float4*)x)[i];  // 16 bytes in one load
        float4 r = {polynomial(b.x, c), polynomial(b.y, c), polynomial(b.z, c), polynomial(b.w, c)};
        ((float4*)y)[i] = r;
    } else {
        #pragma unroll 1
        for (int k = 4 * i; k < n; ++k) y[k] = polynomial(x[k], c);  // the last n % 4, by one thread
    }
}
""",
    "horner",
)


def inputs(n=67_108_864, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, n, dtype=cupy.float32)}


def run(x):
    y = cupy.empty_like(x)
    blocks = -(-x.size // (4 * THREADS))
    horner((blocks,), (THREADS,), (x, y, *COEFFICIENTS, numpy.int32(x.size)))
    return y
