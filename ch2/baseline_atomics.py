"""Count bytes into 256 bins with an atomic addition to device memory for each: all SMs add to the same 1 KiB.

Problem: atomic additions to device memory are carried out in L2, and those to one address one after the other. All
256 Mi additions go to 256 counters, which are 8 lines of 128 bytes:

    268,435,456 additions / 256 counters = 1,048,576 additions to each

Cost: if every counter took one addition a cycle, all counters at the same time, the additions would take 1,048,576
cycles: 0.53 ms at 1.98 GHz, the highest clock of an H200. Reading the bytes takes 0.06 ms at 4.8 TB/s (datasheet).

Predict: does this version take about 0.53 ms, or much longer?
"""

import cupy
import numpy
import torch

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


def library(x):
    counts = torch.bincount(torch.from_dlpack(x), minlength=256)  # the same memory
    return cupy.from_dlpack(counts).astype(cupy.uint32)


def cost(x):
    return {"dram_read_bytes": x.nbytes}  # the counts are 1 KiB


def setup(x):
    sms = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())["multiProcessorCount"]
    room = cupy.empty(512, dtype=cupy.uint32)  # CuPy's arrays begin at multiples of 512 bytes
    first = (512 - room.data.ptr) % 1024 // 4  # on an H200, counters from a multiple of 1 KiB take longer
    return {"blocks": 2 * sms, "counts": room[first : first + 256]}


def run(x, blocks, counts):
    cupy.copyto(counts, 0)
    histogram((blocks,), (THREADS,), (x, counts, numpy.int32(x.size)))
    return counts
