"""Reverse blocks of 128 float4s through a tile that is declared too large: 48 KiB a block, so few warps fit on an SM.

Problem: a block of 4 warps needs 128 * 16 bytes = 2 KiB of shared memory. The tile is declared for the largest block
that could ever run, and the SM reserves what is declared. With 228 KiB of shared memory on an SM:

    48 + 1 KiB a block    4 blocks = 16 warps, of 64 that the SM can hold (1 KiB belongs to the system)
    bytes in flight       16 warps * 32 lanes * 16 bytes = 8 KiB an SM

Cost: by Little's law, bandwidth = bytes in flight / latency. This is a bound for reads, if every thread has its load in
flight all the time. As many bytes are written as are read.

Predict: with 8 KiB on each of 132 SMs and a latency of 400 ns (an assumption), which bandwidth does the law allow for
reads and writes together? Is that less than the 4.8 TB/s of an H200's datasheet?
"""

import cupy

DEVICE = "cuda"
THREADS = 128
TILE = 3072  # float4s: the largest block has 1024 threads, which might take three each
SIZES = {
    "check": {"blocks": 3},
    "check/one": {"blocks": 1},
    "check/129": {"blocks": 129},
    "default": {"blocks": 131_072},  # 256 MiB of float32 in, as many out: larger than any L2
}

reverse = cupy.RawKernel(
    rf"""
extern "C" __global__ void reverse(const float4* x, float4* y) {{
    __shared__ float4 tile[{TILE}];
    int i = blockIdx.x * {THREADS} + threadIdx.x;
    tile[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = tile[{THREADS} - 1 - threadIdx.x];
}}
""",
    "reverse",
)


def inputs(blocks=131_072, device="cuda"):
    return {"x": cupy.random.uniform(-1, 1, (blocks, THREADS, 4), dtype=cupy.float32)}


def reference(x):
    return cupy.ascontiguousarray(x[:, ::-1])


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


def run(x):
    y = cupy.empty_like(x)
    reverse((len(x),), (THREADS,), (x, y))
    return y
