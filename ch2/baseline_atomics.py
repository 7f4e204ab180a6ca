"""Count bytes into 256 bins with an atomic addition to device memory for each: all SMs queue at the same 1 KiB of L2.

Additions to one address wait for each other. The 256 counters are 8 lines of 128 bytes in L2, where the atomics of all
SMs are carried out:

    64 Mi additions to 256 addresses: 262,144 to each, one after the other

Predict before you measure: an SM of `optimized_atomics.py` counts for itself first, in its shared memory. How many
additions does it send to L2 then? What would happen to both files if all bytes were the same?
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
    int first = blockIdx.x * 256 * 256 + threadIdx.x * 16;
    for (int i = first; i < n && i < first + 256 * 256; i += 256 * 16) {
        if (i + 16 <= n) {
            uint4 loaded = *(const uint4*)(x + i);  // 16 bytes in one load
            for (int k = 0; k < 16; ++k) atomicAdd(&counts[((const unsigned char*)&loaded)[k]], 1);
        } else {
            for (int k = i; k < n; ++k) atomicAdd(&counts[x[k]], 1);
        }
    }
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
