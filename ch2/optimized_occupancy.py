"""Reverse blocks of 128 float4s through a tile of the size they need: 2 KiB, so an SM holds all the warps it can.

The work of a thread is the same, and so is the code but for a number. What changes is how many threads are at it:

    2 + 1 KiB a block     16 blocks = 64 warps: the warps run out first, no longer the shared memory
    bytes in flight       64 warps * 32 lanes * 16 bytes = 32 KiB an SM

`benchmark.py --xray occupancy` shows the two numbers before anything is run.

Predict before you measure: four times the bytes are in flight. Is the kernel four times as fast? Would twice the
warps still help, if an SM had room for them?
"""

import cupy

DEVICE = "cuda"
THREADS = 128
TILE = THREADS  # float4s: one for each thread

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
