"""Average every 7 neighbours of a vector, each read from device memory: 7 loads an element, of which 6 find it cached.

    y[i] = (x[i - 3] + x[i - 2] + ... + x[i + 3]) / 7, with zeros beyond the ends

The loads of a warp for one of the 7 are 32 adjacent words, 128 bytes. The next of the 7 reads the same 128 bytes, moved
on by 4: they are in the SM's L1 cache since the first.

Predict before you measure: `optimized_shared_stencil.py` reads every element once into shared memory, as textbooks
from the time before such caches advise. Does it pay?
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
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    #pragma unroll
    for (int k = i - 3; k <= i + 3; ++k)
        if (k >= 0 && k < n) sum += x[k];
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
