"""Count bytes into 32 histograms a block, one for each lane: the lanes of a warp never wait for each other.

Problem: in `optimized_atomics_shared.py` several lanes of a warp want different counters in the same bank.

Idea: the counter of `byte` for lane `lane` is word 32 * byte + lane of shared memory. It lies in bank `lane`:

    one histogram          32 lanes, 256 counters in 32 banks at random: about 3.2 passes
    one for each lane      32 lanes in 32 banks: one pass

Cost: 32 KiB of shared memory a block instead of 1 KiB. It is set to zero first and added up at the end. Two blocks of
1024 threads still fit on an SM of capability 8.0 or 9.0, and fill it with warps.

Predict: 256 Mi / 32 additions of a warp on 132 SMs, one cycle each, at 1.98 GHz: is that longer than reading 256 MiB
at 4.8 TB/s (datasheet of an H200)?
"""

import cupy
import numpy

DEVICE = "cuda"
VERSUS = "shared"
THREADS = 1024  # a block; two of them fill an SM of capability 8.0 or 9.0

histogram = cupy.RawKernel(
    r"""
extern "C" __global__ void histogram(const unsigned char* x, unsigned* counts, int n) {
    __shared__ unsigned bins[256 * 32];
    for (int k = threadIdx.x; k < 256 * 32; k += blockDim.x) bins[k] = 0;
    __syncthreads();
    int lane = threadIdx.x % 32;
    int stride = gridDim.x * blockDim.x * 16;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * 16; i < n; i += stride) {
        if (i + 16 <= n) {
            uint4 loaded = *(const uint4*)(x + i);  // 16 bytes in one load
            #pragma unroll
            for (int k = 0; k < 16; ++k) atomicAdd(&bins[((const unsigned char*)&loaded)[k] * 32 + lane], 1);
        } else {
            for (int k = i; k < n; ++k) atomicAdd(&bins[x[k] * 32 + lane], 1);
        }
    }
    __syncthreads();
    if (threadIdx.x >= 256) return;
    unsigned sum = 0;
    for (int k = 0; k < 32; ++k) sum += bins[threadIdx.x * 32 + (k + lane) % 32];  // each lane from another bank
    atomicAdd(&counts[threadIdx.x], sum);
}
""",
    "histogram",
)


def inputs(n=268_435_456, device="cuda"):
    return {"x": cupy.random.randint(0, 256, n, dtype=cupy.uint8)}


def setup(x):
    sms = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["multiProcessorCount"]
    return {"blocks": 2 * sms}


def run(x, blocks):
    counts = cupy.zeros(256, dtype=cupy.uint32)
    histogram((blocks,), (THREADS,), (x, counts, numpy.int32(x.size)))
    return counts
