"""Count bytes into 256 bins with an atomic addition to device memory for each: all SMs queue at the same 1 KiB of L2.

Atomics of device memory are carried out in L2, and those to one address one after the other. The 256 counters are 8
lines of 128 bytes, in few of the many parts that an L2 consists of:

    256 Mi additions, most lanes of a warp to another address: nearly each is a request of its own, to 8 lines

Predict before you measure: an SM of `optimized_atomics.py` counts for itself first, in its shared memory. How many
additions does it send to L2 then? If all bytes were the same, a warp could send one request for its 32 additions: would
that be faster or slower?
"""

import cupy
import numpy

DEVICE = "cuda"
SIZES = {
    "check": {"n": 127},
    "check/one": {"n": 1},
    "check/129": {"n": 129},
    "check/tail": {"n": 199_999},  # many threads, the last one not full, and no multiple of 16
    "check/many": {"n": 999_999},  # where all bytes are the same, more than 65,535 in a bin of each block
    "default": {"n": 268_435_456},  # 256 MiB: larger than any L2
}
THREADS = 1024  # a block; two of them fill an SM of capability 8.0 or 9.0

histogram = cupy.RawKernel(
    r"""
extern "C" __global__ void histogram(const unsigned char* x, unsigned* counts, int n) {
    int stride = gridDim.x * blockDim.x * 16;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * 16; i < n; i += stride) {
        if (i + 16 <= n) {
            uint4 loaded = *(const uint4*)(x + i);  // 16 bytes in one load
            #pragma unroll
            for (int k = 0; k < 16; ++k) atomicAdd(&counts[((const unsigned char*)&loaded)[k]], 1);
        } else {
            for (int k = i; k < n; ++k) atomicAdd(&counts[x[k]], 1);
        }
    }
}
""",
    "histogram",
)


def inputs(n=268_435_456, device="cuda"):
    return {"x": cupy.random.randint(0, 256, n, dtype=cupy.uint8)}


def reference(x):
    return cupy.bincount(x, minlength=256).astype(cupy.uint32)


def cost(x):
    return {"dram_bytes": x.nbytes}  # read x; the counts are 1 KiB


def setup(x):
    sms = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["multiProcessorCount"]
    return {"blocks": 2 * sms}


def run(x, blocks):
    counts = cupy.zeros(256, dtype=cupy.uint32)
    histogram((blocks,), (THREADS,), (x, counts, numpy.int32(x.size)))
    return counts
