"""Average every 7 neighbours of a vector, staged in shared memory: one load of each element, then 7 from there.

A block loads its 256 elements and 3 more on either side, waits until all are there, and reads the rest of its 7 from
shared memory:

    from device memory    262 loads for 256 elements, instead of 1792
    from shared memory    1792 loads, 262 stores, and a barrier

An L1 cache is the same memory as shared memory, on the same SM, and as fast to read. What staging saved on GPUs that
had no such cache, it now adds: stores and a barrier.

Predict before you measure: the bytes that cross the memory bus are the same. Which of the two is faster, if any? When
would you still stage by hand?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 100_003},  # many blocks, the last one not full
    "default": {"n": 67_108_864},  # 256 MiB of float32 in, as many out: larger than any L2
}
THREADS = 256  # a block

stencil = cupy.RawKernel(
    r"""
extern "C" __global__ void stencil(const float* x, float* y, int n) {
    __shared__ float tile[256 + 6];
    int i = blockIdx.x * 256 + threadIdx.x;
    for (int k = threadIdx.x; k < 256 + 6; k += 256) {
        int at = blockIdx.x * 256 - 3 + k;
        tile[k] = at >= 0 && at < n ? x[at] : 0;
    }
    __syncthreads();
    if (i >= n) return;
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 7; ++k) sum += tile[threadIdx.x + k];
    y[i] = sum / 7;
}
""",
    "stencil",
)


def inputs(n=67_108_864, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, n, dtype=cupy.float32)}


def reference(x):
    padded = cupy.pad(x, 3)
    return sum(padded[k : k + x.size] for k in range(7)) / 7


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


def run(x):
    y = cupy.empty_like(x)
    stencil((-(-x.size // THREADS),), (THREADS,), (x, y, numpy.int32(x.size)))
    return y
