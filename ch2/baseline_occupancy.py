"""Reverse blocks of 128 float4s through a tile sized for any block: 48 KiB each, so an SM has room for few warps.

A block of 4 warps needs 128 * 16 bytes = 2 KiB of shared memory. Its tile was declared for the largest block there
might ever be, and shared memory is given out by declaration. On an SM with 228 KiB of it:

    48 + 1 KiB a block    4 blocks = 16 warps, of 64 that it could hold
    bytes in flight       16 warps * 32 lanes * 16 bytes = 8 KiB

Little's law: bandwidth = bytes in flight / latency, whatever the memory could do. `python ch2/hardware_info.py`
measures your GPU's latency: how much is it for all its SMs with 8 KiB each? That is a bound, and for reads alone: a
block's 8 KiB are in flight for a part of its time only. It also waits at its barrier, stores, ends, and is replaced.

Predict before you measure: what does `optimized_occupancy.py` gain by asking for what it needs, and where does that
end: at the law, or at the memory's own bandwidth?
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
