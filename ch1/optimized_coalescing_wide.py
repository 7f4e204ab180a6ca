"""Square a vector with 16 bytes a lane and instruction: a warp asks for 512 adjacent bytes at once, a quarter as often.

Problem: in `optimized_coalescing_adjacent.py` a thread issues 8 loads and 8 stores, each of 4 bytes.

Idea: the compiler sees that the lanes are adjacent. Where it also knows that the arrays begin at multiples of 16 bytes,
it lets a lane move four neighbouring elements with one instruction:

    4 bytes a lane    8 loads of 128 bytes a warp, 8 stores
    16 bytes a lane   2 loads of 512 bytes a warp, 2 stores

Triton looks at the addresses at each launch, and compiles a kernel for those that are multiples of 16. (torch allocates
at multiples of 512.)

Cost: none. Every byte is moved once, and there is one multiplication for 8 bytes.

Predict: which share of the rate of a plain copy should this reach?
"""

import torch
import triton
import triton.language as tl

VERSUS = "adjacent"


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


@triton.jit
def square_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    offsets = pid * BLOCK + lane  # neighbours adjacent
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * x, mask=mask)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    square_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
