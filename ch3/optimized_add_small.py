"""Add two small matrices by the function in C behind Triton's launch: what Python asks in every call is asked once.

Problem: the plain launch of `baseline_add_small.py` asks the same questions in every call and gets the same answers.

Idea: a launch returns the compiled kernel, and with it the function in C in which every launch ends. `setup` keeps both
(`small_add.py`), and `run` passes only what may differ from the last call:

    bind, types, look up      once, in `setup`: types and sizes of later calls are those of the first
    device, grid, n           once
    alignment                 never: the kernel is compiled for any address
    hooks, scratch memory     never: no profiler is attached, and this kernel needs none
    stream                    in every call: the caller may have changed it
    addresses                 in every call, as integers, about which C need not ask the driver

Cost: the checks are given up. A tensor of another type or size, on another device or on the CPU would be read as if it
fitted. Triton's profiler does not hear of the launch, and the function in C is no public interface.

Predict: `library` is torch.add, which checks all of this in C++ in every call. Is it faster than this version, or
slower?
"""

import torch
import triton
import triton.language as tl
from small_add import launcher

BLOCK = 1024  # elements of a program
WARPS = 4
CLOCK = "wall"  # launching is what is measured
DEVICE = "cuda"


def inputs(rows=256, columns=256, dtype="float32", device="cuda"):
    x, y = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "y": y, "out": torch.empty_like(x)}


# Compiled once for any addresses and any length: who keeps the compiled kernel need not look at either again
@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x_ptr", "y_ptr", "out_ptr"])
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def setup(x, y, out):
    n = x.numel()
    programs = triton.cdiv(n, BLOCK)
    compiled = add_kernel[(programs,)](x, y, out, n, BLOCK=BLOCK, num_warps=WARPS)
    launch, current_stream = launcher(compiled, programs, BLOCK), triton.runtime.driver.active.get_current_stream
    return {"launch": launch, "current_stream": current_stream, "device": x.device.index, "n": n}


def run(x, y, out, launch, current_stream, device, n):
    launch(current_stream(device), x.data_ptr(), y.data_ptr(), out.data_ptr(), n)
    return out
