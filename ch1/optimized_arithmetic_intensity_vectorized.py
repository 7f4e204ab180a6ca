"""A polynomial of 64 M floats in four passes, 16 bytes per load: the same 2.95 GB in a quarter of the loads.

Problem: the unrolled version issues eight loads and four stores a thread, each of 4 bytes.

Idea: four neighbouring floats are one float4, loaded and stored by one instruction. A warp then asks for 512 bytes at
once:

    unrolled     4 loads of 32 *  4 = 128 bytes
    vectorized   1 load  of 32 * 16 = 512 bytes

Cost: addresses must be multiples of 16 (those of allocations are), and one thread does the last n % 4 elements. A
thread still has four floats of each array in flight.

Is issuing the instructions the limit? A warp moves 1.5 KB in both versions. Compare the time that the memory needs for
them with the number of instructions that fit into it:

    memory         4 TB/s / 132 multiprocessors / 1.9 GHz = 16 bytes a cycle; 1.5 KB take 96 cycles
    instructions   a multiprocessor issues up to 4 a cycle, 384 in 96 cycles; a warp of `_unrolled` has about 60

Predict: what is the ratio to `optimized_arithmetic_intensity_unrolled.py`?
"""

import cupy
import numpy

DEVICE = "cuda"
VERSUS = "unrolled"
THREADS = 256  # per block
COEFFICIENTS = numpy.array([0.5, -1.25, 0.75, 2.0], dtype=numpy.float32)  # exact in binary, so float64 uses the same

horner = cupy.RawKernel(
    r"""
extern "C" __global__ void horner(const float* x, const float* acc, float* y, float c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 a = ((const float4*)acc)[i];  // 16 bytes in one load
        float4 b = ((const float4*)x)[i];
        float4 r = {a.x * b.x + c, a.y * b.y + c, a.z * b.z + c, a.w * b.w + c};
        ((float4*)y)[i] = r;  // acc and y may be the same array
    } else {
        #pragma unroll 1
        for (int k = 4 * i; k < n; ++k) y[k] = acc[k] * x[k] + c;  // the last n % 4, by one thread
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
