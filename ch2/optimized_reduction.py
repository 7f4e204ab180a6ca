"""Sum a vector in three stages: 16 elements a thread in a register, 256 threads in shared memory, then one atomic.

Problem: in `baseline_reduction.py` all additions wait for one word of L2.

Idea: add up as much as possible where no other thread is involved:

    in registers        16 elements a thread, four of them in one load
    in shared memory    256 sums -> 1 in 8 steps, each with half as many threads as before
    in L2               one atomic addition a block: 16,384 instead of 67,108,864

Cost: a barrier before each of the 8 steps, and threads that are idle in them.

Predict: at one atomic addition a cycle and 1.98 GHz, is the time of the 16,384 additions more or less than the
0.056 ms for reading 256 MiB at 4.8 TB/s (datasheet of an H200)?
"""

import cupy
import numpy

DEVICE = "cuda"
THREADS = 256  # a block
ELEMENTS = 16  # that a thread adds

total = cupy.RawKernel(
    r"""
extern "C" __global__ void total(const int* x, unsigned long long* sum, int n) {
    __shared__ long long sums[256];
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
    sums[threadIdx.x] = acc;
    for (int stride = 128; stride; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
    }
    if (threadIdx.x == 0) atomicAdd(sum, sums[0]);
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
