"""Count bytes into 256 bins of shared memory, then add each block's 256 counts to device memory.

Problem: in `baseline_atomics.py` all SMs add to the same 1 KiB in L2.

Idea: a block has a histogram of its own, 1 KiB of shared memory. The SM carries out atomic additions to shared memory
by itself. When a block has counted all its bytes, 256 threads add one count each to device memory. On 132 SMs:

    in shared memory    256 Mi additions, spread over all SMs
    in L2               2 * 132 blocks * 256 = 67,584 additions, 4000 times fewer

Cost: lanes of a warp wait for each other if their counters are different words of the same bank. With random bytes the
busiest of the 32 banks has 3.2 such words on average (simulated), so an addition of a warp takes about 3.2 passes.

Predict: 256 Mi / 32 additions of a warp on 132 SMs, 3.2 cycles each, at 1.98 GHz: is that longer than reading 256 MiB
at 4.8 TB/s (datasheet of an H200)?
"""

import cupy
import numpy

DEVICE = "cuda"
THREADS = 1024  # a block; two of them fill an SM of capability 8.0 or 9.0

histogram = cupy.RawKernel(
    r"""
extern "C" __global__ void histogram(const unsigned char* x, unsigned* counts, int n) {
    __shared__ unsigned bins[256];
    if (threadIdx.x < 256) bins[threadIdx.x] = 0;
    __syncthreads();
    int stride = gridDim.x * blockDim.x * 16;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * 16; i < n; i += stride) {
        if (i + 16 <= n) {
            uint4 loaded = *(const uint4*)(x + i);  // 16 bytes in one load
            #pragma unroll
            for (int k = 0; k < 16; ++k) atomicAdd(&bins[((const unsigned char*)&loaded)[k]], 1);
        } else {
            for (int k = i; k < n; ++k) atomicAdd(&bins[x[k]], 1);
        }
    }
    __syncthreads();
    if (threadIdx.x < 256) atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
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
