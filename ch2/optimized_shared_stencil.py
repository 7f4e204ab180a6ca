"""Average every 7 neighbours of a vector, staged in shared memory: each element is loaded once, and read from there.

Problem: in `baseline_shared_stencil.py` each element is loaded by three threads.

Idea: a block loads its 1024 elements and 4 more on either side into shared memory, waits until all are there, and reads
its neighbours from there:

    from device memory    258 loads of 16 bytes for 1024 elements, instead of 768
    in shared memory      258 stores, a barrier, 768 loads

Cost: L1 cache and shared memory are the same memory of an SM. Staging pays where an element is read many times, as in
the tiles of a product or in stencils of two dimensions. Here it is three times, which L1 serves as well, and staging
adds instructions.

Predict: how many loads and stores does a thread make before it adds up, here and in the baseline?
"""

import cupy
import numpy

DEVICE = "cuda"
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
    __shared__ float4 tile[256 + 2];
    for (int k = threadIdx.x; k < 256 + 2; k += 256) tile[k] = load4(x, (blockIdx.x * 256 + k - 1) * 4, n);
    __syncthreads();
    int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    float v[12], sum[4] = {};
    #pragma unroll
    for (int k = 0; k < 3; ++k) *(float4*)(v + 4 * k) = tile[threadIdx.x + k];
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


def run(x):
    y = cupy.empty_like(x)
    stencil((-(-x.size // (4 * THREADS)),), (THREADS,), (x, y, numpy.int32(x.size)))
    return y
