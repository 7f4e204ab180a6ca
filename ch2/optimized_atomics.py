"""Count bytes into 256 bins of shared memory, then add each block's 256 counts to device memory: 1/256 of the queue.

A block of 256 threads counts 64 KiB in a histogram of its own, 1 KiB of shared memory, whose atomics an SM carries out
itself. Only then does each of its threads add one count to device memory:

    in shared memory    64 Mi additions, spread over all SMs
    in L2               1024 blocks * 256 = 262,144 additions, 256 times fewer

Predict before you measure: the additions that remain are all in shared memory. Is reading 64 MiB what takes longest
now? Two lanes of a warp that count the same byte still wait for each other: how likely is that?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 199_999},  # many blocks, the last one not full, and no multiple of 16
    "default": {"n": 67_108_864},  # 64 MiB
}
THREADS = 256  # a block: one for each bin
BYTES = 256  # that a thread counts

histogram = cupy.RawKernel(
    r"""
extern "C" __global__ void histogram(const unsigned char* x, unsigned* counts, int n) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    int first = blockIdx.x * 256 * 256 + threadIdx.x * 16;
    for (int i = first; i < n && i < first + 256 * 256; i += 256 * 16) {
        if (i + 16 <= n) {
            uint4 loaded = *(const uint4*)(x + i);  // 16 bytes in one load
            for (int k = 0; k < 16; ++k) atomicAdd(&mine[((const unsigned char*)&loaded)[k]], 1);
        } else {
            for (int k = i; k < n; ++k) atomicAdd(&mine[x[k]], 1);
        }
    }
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
""",
    "histogram",
)


def inputs(n=67_108_864, device="cuda"):
    return {"x": cupy.random.randint(0, 256, n, dtype=cupy.uint8)}


def reference(x):
    return cupy.bincount(x, minlength=256).astype(cupy.uint32)


def cost(x):
    return {"dram_bytes": x.nbytes}  # read x; the counts are 1 KiB


def run(x):
    counts = cupy.zeros(256, dtype=cupy.uint32)
    histogram((-(-x.size // (THREADS * BYTES)),), (THREADS,), (x, counts, numpy.int32(x.size)))
    return counts
