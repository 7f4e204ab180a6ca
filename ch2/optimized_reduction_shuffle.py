"""Sum a vector with warp shuffles: 32 lanes add up through their registers, and a block needs one barrier, not eight.

Problem: in `optimized_reduction_shared.py` a block waits at eight barriers.

Idea: the lanes of a warp can read each other's registers. Five of the eight steps need no shared memory and no barrier:

    in registers        16 elements a thread
    within a warp       32 sums -> 1 in 5 steps (two shuffles each, as the sums have 64 bits), no barrier
    in shared memory    the sums of 8 warps, one barrier, then the first warp adds them up
    in L2               one atomic addition a block, as before

Cost: none in memory. All lanes execute the shuffles, though half of the results are not used.

Predict: barriers and shared memory are saved, the bytes that are read are the same. Is this version faster than
`optimized_reduction_shared.py`?
"""

import cupy
import numpy

DEVICE = "cuda"
VERSUS = "shared"
THREADS = 256  # a block
ELEMENTS = 16  # that a thread adds

total = cupy.RawKernel(
    r"""
__device__ long long warp_sum(long long value) {
    for (int offset = 16; offset; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
    return value;  // in lane 0
}

extern "C" __global__ void total(const int* x, unsigned long long* sum, int n) {
    __shared__ long long sums[8];
    int first = blockIdx.x * blockDim.x * 16 + threadIdx.x;
    long long acc = 0;
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
        int i = first + k * blockDim.x;
        if (i < n) acc += x[i];
    }
    acc = warp_sum(acc);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = acc;
    __syncthreads();
    if (threadIdx.x < 32) acc = warp_sum(threadIdx.x < 8 ? sums[threadIdx.x] : 0);
    if (threadIdx.x == 0) atomicAdd(sum, acc);
}
""",
    "total",
)


def inputs(n=67_108_864, device="cuda"):
    return {"x": cupy.random.randint(-(2**31), 2**31, n, dtype=cupy.int32)}


def run(x):
    sum_ = cupy.zeros(1, dtype=cupy.int64)
    total((-(-x.size // (THREADS * ELEMENTS)),), (THREADS,), (x, sum_, numpy.int32(x.size)))
    return sum_
