"""Sum a vector with warp shuffles, 16 bytes a load: four loads a thread instead of sixteen.

Problem: in `optimized_reduction_shuffle.py` a thread issues 16 loads of 4 bytes.

Idea: four neighbouring elements are an int4, which one instruction loads. All else is as before.

Cost: x must begin at a multiple of 16 bytes, as allocations do. One case is added: the last n % 4 elements are no whole
int4, and the thread that comes to them adds them one by one.

Predict: chapter 1's `arithmetic_intensity` has this step, from `unrolled` to `vectorized`. What does it gain here?
"""

import cupy
import numpy

DEVICE = "cuda"
VERSUS = "shuffle"
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
    int first = blockIdx.x * blockDim.x * 4 + threadIdx.x;  // in int4s
    long long acc = 0;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        int i = first + k * blockDim.x;
        if (4 * i + 4 <= n) {
            int4 v = ((const int4*)x)[i];
            acc += ((long long)v.x + v.y) + ((long long)v.z + v.w);
        } else {
            #pragma unroll 1
            for (int tail = 4 * i; tail < n; ++tail) acc += x[tail];
        }
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
