"""Sum integers with an atomic addition for every element: 64 Mi additions to one address, one after the other.

Problem: an atomic addition gives the right sum in any order of the threads. But all additions go to one word of L2:

    67,108,864 additions to one address

The elements are 32-bit integers and the sum has 64 bits, so that the result does not depend on the order. (A sum of
floats would: the last elements would lose digits when they are added to a much larger sum.)

Cost: one addition a cycle for this address takes 67,108,864 cycles, at 1.98 GHz (the highest clock of an H200). Reading
256 MiB takes 0.056 ms at 4.8 TB/s (datasheet).

The versions that follow add up where fewer threads wait for each other: in registers, in shared memory, by shuffles.

Predict: `optimized_reduction_shared.py` needs few atomic additions. If it takes no longer than reading, which ratio
follows?
"""

import cupy
import numpy
import torch

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
    return cupy.from_dlpack(torch.from_dlpack(x).sum(0, keepdim=True))  # the same memory; int32 adds up in int64


def cost(x):
    return {"dram_read_bytes": x.nbytes}  # once


def run(x):
    sum_ = cupy.zeros(1, dtype=cupy.int64)
    total((-(-x.size // (THREADS * ELEMENTS)),), (THREADS,), (x, sum_, numpy.int32(x.size)))
    return sum_
