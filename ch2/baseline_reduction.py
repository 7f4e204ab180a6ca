"""Sum integers with an atomic addition for every element: 64 Mi additions to one address, one after the other.

An atomic addition is right whatever the order of the threads, and so the shortest way to a sum:

    67,108,864 additions to one word of L2

The elements are 32-bit integers and the sum has 64 bits, so that every order gives the same. (Floats would lose digits
here as well: the last of them would be added to a sum thousands of times their size.)

Predict before you measure: what is the limit here, the memory's bandwidth or something else? `optimized_reduction.py`
sends one addition to L2 for each block; in which ratio do you expect the times?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/tail": {"n": 199_999},  # many blocks, the last one not full
    "default": {"n": 67_108_864},  # 256 MiB of int32: larger than any L2
}
THREADS = 256  # a block
ELEMENTS = 16  # that a thread adds

total = cupy.RawKernel(
    r"""
extern "C" __global__ void total(const int* x, unsigned long long* sum, int n) {
    int first = blockIdx.x * blockDim.x * 16 + threadIdx.x;
    for (int k = 0; k < 16; ++k) {
        int i = first + k * blockDim.x;
        if (i < n) atomicAdd(sum, (long long)x[i]);
    }
}
""",
    "total",
)


def inputs(n=67_108_864, device="cuda"):
    return {"x": cupy.random.randint(-(2**31), 2**31, n, dtype=cupy.int32)}


def reference(x):
    return x.sum(keepdims=True)


def library(x):
    return x.sum(keepdims=True)


def cost(x):
    return {"dram_bytes": x.nbytes}  # read x once


def run(x):
    sum_ = cupy.zeros(1, dtype=cupy.int64)
    total((-(-x.size // (THREADS * ELEMENTS)),), (THREADS,), (x, sum_, numpy.int32(x.size)))
    return sum_
