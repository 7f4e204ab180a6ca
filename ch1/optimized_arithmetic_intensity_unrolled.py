"""A polynomial of 64 M floats in four passes, four floats per thread: the same 2.95 GB, 4x the loads in flight.

Problem: memory answers after hundreds of nanoseconds, and later under load. Bandwidth x latency bytes must be in flight
to keep it busy. Suppose 600 ns (nobody measured them): at 4.8 TB/s that is 2.88 MB, or 21.8 KB for each of an H200's
132 multiprocessors. In the baseline a thread has one float of each of two arrays in flight, 8 bytes: 16.4 KB with 2048
resident threads.

Idea: a thread takes four floats of each array and issues all eight loads before it needs the first: up to 66 KB. The
four are blockDim.x apart, so that in each load the lanes of a warp stay adjacent.

Cost: more registers a thread (32 instead of 12 for compute capability 9.0). Bytes and FLOPs are unchanged: the
intensity stays 8 / 44 = 0.18 FLOP per byte.

Predict: by how much could this be faster than the baseline, if bytes in flight are all that the baseline lacks?
"""

import cupy
import numpy

DEVICE = "cuda"
THREADS = 256  # per block
COEFFICIENTS = numpy.array([0.5, -1.25, 0.75, 2.0], dtype=numpy.float32)  # exact in binary, so float64 uses the same

horner = cupy.RawKernel(
    r"""
extern "C" __global__ void horner(const float* x, const float* acc, float* y, float c, int n) {
    int first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
    float a[4], b[4];
    #pragma unroll
    for (int k = 0; k < 4; ++k) {  // eight loads in flight before the first is needed
        int i = first + k * blockDim.x;
        if (i < n) a[k] = acc[i], b[k] = x[i];
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        int i = first + k * blockDim.x;
        if (i < n) y[i] = a[k] * b[k] + c;  // acc and y may be the same array
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
    acc = x
    for c in COEFFICIENTS:
        horner((blocks,), (THREADS,), (x, acc, y, c, numpy.int32(x.size)))
        acc = y
    return y
