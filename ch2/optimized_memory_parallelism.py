"""Add two vectors, 16 elements of each at a time: a thread has 32 loads in flight, then it waits.

Problem: in `baseline_memory_parallelism.py` a thread has two loads in flight, and there are few threads.

Idea: the loads of 16 rounds come first, before any store. The compiler can issue all of them before it needs the first
result:

    load a, load b, load a, load b ... 32 loads, wait, 16 stores
    bytes in flight       512 threads * 32 loads * 4 bytes = 64 KiB an SM

Cost: 32 registers a thread for the values. More threads would have the same effect (`optimized_occupancy.py`); this
works where there is no room for more threads.

Predict: 16 times as many bytes are in flight. Why is it not 16 times as fast?
"""

import cupy
import numpy

DEVICE = "cuda"
THREADS = 512  # a block; one block an SM, as where a kernel's shared memory or registers allow no more

add = cupy.RawKernel(
    r"""
extern "C" __global__ void add(const float* a, const float* b, float* y, int n) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 16 * stride) {
        float p[16], q[16];
        #pragma unroll
        for (int k = 0; k < 16; ++k)
            if (i + k * stride < n) p[k] = a[i + k * stride], q[k] = b[i + k * stride];
        #pragma unroll
        for (int k = 0; k < 16; ++k)
            if (i + k * stride < n) y[i + k * stride] = p[k] + q[k];
    }
}
""",
    "add",
)


def inputs(n=67_108_864, device="cuda"):
    return {name: cupy.random.uniform(-1, 1, n, dtype=cupy.float32) for name in ("a", "b")}


def setup(a, b):
    return {"sms": cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["multiProcessorCount"]}


def run(a, b, sms):
    y = cupy.empty_like(a)
    add((sms,), (THREADS,), (a, b, y, numpy.int32(a.size)))
    return y
