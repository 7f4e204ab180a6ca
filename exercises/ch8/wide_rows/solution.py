"""Rows of 16,384 in 4 warps: a thread holds more values than it can have registers.

x, z and dy have 16,384 values each, and all are needed until the end: 3 * 16,384 / 128 = 384 values a thread, where 255
registers are the most. So the compiler writes values to local memory and reads them again: 2454 of 2582 accesses to
memory in the code are of this kind. The SM is full, 64 warps, which helps nothing: its warps wait for spilled values.

Nobody set a limit of 32 registers: the compiler chose them, and 32 are what lets an SM hold 64 warps. `maxnreg=255`
gives a thread 255. It then spills far less, but it still spills: 384 values do not fit.

8 warps hold 192 values a thread, which fit. Its accesses fall to what loads and stores need: 20 times fewer in the
code. The time falls less than that, because spilled values stay in L1 and L2 as far as there is room. A profile of a
GPU shows local loads and stores, which no kernel without spills has.

Below is the program that was compiled.
"""

import torch
import triton
import triton.language as tl

cause = "registers"
values = 3 * 16_384 // 128  # that a thread has to hold
warps = 8
gain = (18, 22)  # times fewer accesses to memory in a program's code


@triton.jit
def project_kernel(x_ptr, z_ptr, dy_ptr, dx_ptr, N: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, N)
    x, z = tl.load(x_ptr + row * N + cols), tl.load(z_ptr + row * N + cols)
    dy = tl.load(dy_ptr + row * N + cols)
    tl.store(dx_ptr + row * N + cols, dy - x * (tl.sum(x * dy) / N) - z * (tl.sum(z * dy) / N))


def inputs(rows=16_384, columns=16_384, device="cuda"):
    return {name: torch.randn(rows, columns, device=device) for name in ("x", "z", "dy")}


def run(x, z, dy):
    dx = torch.empty_like(dy)
    project_kernel[(len(x),)](x, z, dy, dx, x.shape[1], num_warps=4)
    return dx
