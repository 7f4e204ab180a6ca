"""Add two vectors, one element after the other: a thread has two loads in flight, then it waits.

Problem: one block of 512 threads an SM walks over the vectors. The store to y could be to the same address as the next
load of a or b, for all that the compiler knows. So it may not move a load before an earlier store, and each round
waits for the memory once:

    load a, load b, wait, store; load a, load b, wait, store; ...
    bytes in flight       512 threads * 2 loads * 4 bytes = 4 KiB an SM

Cost: by Little's law, bandwidth = bytes in flight / latency.

Predict: with 4 KiB on each of 132 SMs and a latency of 400 ns (an assumption), how long does it take to read the
512 MiB of a and b?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 199_999},  # more than a round of all threads, the last one not full
    "default": {"n": 67_108_864},  # 256 MiB of float32 a vector: larger than any L2
}
THREADS = 512  # a block; one block an SM, as where a kernel's shared memory or registers allow no more

add = cupy.RawKernel(
    r"""
extern "C" __global__ void add(const float* a, const float* b, float* y, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = a[i] + b[i];
}
""",
    "add",
)


def inputs(n=67_108_864, device="cuda"):
    return {name: cupy.random.uniform(-1, 1, n, dtype=cupy.float32) for name in ("a", "b")}


def reference(a, b):
    return a + b


def cost(a, b):
    return {"dram_bytes": 3 * a.nbytes}  # read a and b, write y


def setup(a, b):
    return {"sms": cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["multiProcessorCount"]}


def run(a, b, sms):
    y = cupy.empty_like(a)
    add((sms,), (THREADS,), (a, b, y, numpy.int32(a.size)))
    return y
