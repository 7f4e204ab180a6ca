"""Sum integers with one atomic addition a block: the 256 threads of a block add up in shared memory first, as a tree.

Problem: in `optimized_reduction_registers.py` the 4 Mi sums of threads wait for one word of L2.

Idea: a block adds up the sums of its threads in shared memory, where only this block waits:

    in registers        16 elements a thread
    in shared memory    256 sums -> 1 in 8 steps, each with half as many threads as before
    in L2               one atomic addition a block: 16,384 instead of 4,194,304

Cost: a barrier before each of the 8 steps, and threads that are idle in them.

Predict: at one atomic addition a cycle and 1.98 GHz, is the time of the 16,384 additions more or less than the
0.056 ms for reading 256 MiB at 4.8 TB/s (datasheet of an H200)?
"""

import cupy
import numpy

DEVICE = "cuda"
VERSUS = "registers"
THREADS = 256  # a block
ELEMENTS = 16  # that a thread adds

total = cupy.RawKernel(
    r"""
extern "C" __global__ void total(const int* x, unsigned long long* sum, int n) {
    __shared__ long long sums[256];
    int first = blockIdx.x * blockDim.x * 16 + threadIdx.x;
    long long acc = 0;
    #pragma unroll
    for (int k = 0; k < 16; ++k) {
        int i = first + k * blockDim.x;
        if (i < n) acc += x[i];
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
