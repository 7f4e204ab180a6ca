"""Add two small matrices by a plain Triton launch: 768 KiB to move, and Python looks at every argument first.

The kernel is short: 768 KiB at 4 TB/s are 0.2 us, a few microseconds with its start and end. The way there is long.
`add_kernel[grid](...)` is Python, which in every call

    binds five arguments and the launch options by name
    asks of each tensor its type and alignment, of each number whether it is 1 or divisible by 16
    makes a key of the answers and looks the compiled kernel up
    asks for the current device and stream, and compares the globals that the kernel uses
    hands over to C, which asks each tensor for its address, the driver whether the GPU can see it, and launches

Predict before you measure: the GPU waits for the CPU. Of the time of a call, which share is the kernel's? Then what
does a kernel that is twice as fast gain?
"""

import torch
import triton
from small_add import BLOCK, WARPS, add_kernel

CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"
SIZES = {
    "check": {"rows": 127, "columns": 129}, "check/one": {"rows": 1, "columns": 1},
    "check/fp16": {"rows": 33, "columns": 127, "dtype": "float16"},
    "default": {"rows": 256, "columns": 256},  # 256 KiB of float32 a matrix: a fraction of the L2
    "small/512x512": {"rows": 512, "columns": 512},
}  # fmt: skip


def inputs(rows=256, columns=256, dtype="float32", device="cuda"):
    x, y = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "y": y, "out": torch.empty_like(x)}


def reference(x, y, out):
    return x + y


def library(x, y, out):
    return torch.add(x, y, out=out)


def cost(x, y, out):
    return {"dram_bytes": 3 * x.nbytes}  # read x and y, write the sum


def run(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK, num_warps=WARPS)
    return out
