"""Reverse blocks of 128 float4s through a tile of the size that they need: 2 KiB a block, so an SM is full of warps.

Problem: in `baseline_occupancy.py` the shared memory of an SM is used up by 16 of 64 warps.

Idea: declare what the block needs. Only a number in the code changes:

    2 + 1 KiB a block     16 blocks = 64 warps: now the warps are the limit
    bytes in flight       64 warps * 32 lanes * 16 bytes = 32 KiB an SM

Cost: none. `python benchmark.py --xray occupancy` shows both numbers of warps before anything runs.

Predict: four times as many bytes are in flight. Is the kernel four times as fast?
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


def run(x):
    y = cupy.empty_like(x)
    reverse((len(x),), (THREADS,), (x, y))
    return y
