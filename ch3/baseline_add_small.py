"""Add two small matrices by a plain Triton launch: 768 KiB to move, and Python looks at every argument first.

Problem: the kernel is short, and the way to it is long. `add_kernel[grid](...)` is Python, which in every call

    asks for the current device and stream
    binds five arguments and the launch options by name
    asks the type of each tensor and number (and whether 16 divides it, unless the kernel forbids it, as this one)
    makes a key of the answers and looks the compiled kernel up
    puts together what a profiler would want to know
    asks, in the launcher, whether the kernel needs scratch memory

and ends in one function in C. That asks each tensor for its address and the driver whether the GPU can see it, calls
the profiler's hooks, and launches.

Cost: 768 KiB, which take 0.16 us at an H200's 4.8 TB/s (datasheet); with its start and its end a kernel takes a few
microseconds. The matrices are contiguous and are added as vectors. The clock is the wall's: the whole call counts.

Predict: by how many times does a call become faster if the kernel becomes twice as fast?
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024  # elements of a program
WARPS = 4
CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"
SIZES = {
    "check": {"rows": 127, "columns": 129}, "check/one": {"rows": 1, "columns": 1},
    "check/fp16": {"rows": 33, "columns": 127, "dtype": "float16"},
    "count": {"rows": 96, "columns": 256},  # 24 programs
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


# Compiled once for any addresses and any length: who keeps the compiled kernel need not look at either again
@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr", "y_ptr", "out_ptr"])
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def run(x, y, out):
    n = x.numel()
    add_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK, num_warps=WARPS)
    return out
