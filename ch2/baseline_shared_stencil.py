"""Average every 7 neighbours of a vector, each thread reads what it needs: the L1 cache serves what threads share.

Problem: y[i] = (x[i - 3] + x[i - 2] + ... + x[i + 3]) / 7, with zeros beyond the ends. A thread computes 4 neighbours
and loads 12 elements for them, 16 bytes at a time. Two of its three loads are also made by the threads beside it:

    from L1               3 loads of 16 bytes for 4 elements
    from device memory    each element once, if L1 keeps it until the neighbours have read it

Cost: three times as many loads as elements need.

Predict: `optimized_shared_stencil.py` loads every element once, into shared memory, and reads it three times from
there. Is it faster, slower, or the same?
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
THREADS = 256  # a block: 4 elements each

stencil = cupy.RawKernel(
    r"""
__device__ float4 load4(const float* x, int i, int n) {  // x[i] ... x[i + 3], with zeros beyond the ends
    if (i >= 0 && i + 4 <= n) return *(const float4*)(x + i);
    float v[4] = {};
    for (int k = 0; k < 4; ++k) if (i + k >= 0 && i + k < n) v[k] = x[i + k];
    return make_float4(v[0], v[1], v[2], v[3]);
}

extern "C" __global__ void stencil(const float* x, float* y, int n) {
    int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    float v[12], sum[4] = {};
    #pragma unroll
    for (int k = 0; k < 3; ++k) *(float4*)(v + 4 * k) = load4(x, i - 4 + 4 * k, n);
    #pragma unroll
    for (int k = 0; k < 4; ++k)
        for (int j = 1; j < 8; ++j) sum[k] += v[k + j] * (1.0f / 7);
    if (i + 4 <= n) *(float4*)(y + i) = *(float4*)sum;
    else for (int k = 0; k < 4; ++k) if (i + k < n) y[i + k] = sum[k];
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
    stencil((-(-x.size // (4 * THREADS)),), (THREADS,), (x, y, numpy.int32(x.size)))
    return y
