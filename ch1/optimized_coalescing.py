"""Square a vector with the lanes of a warp side by side: 32 lanes share four 32-byte sectors and use all of them.

A warp's 32 loads become as few memory requests as their addresses allow. Memory arrives in sectors of 32 bytes, so

    adjacent lanes    32 * 4 = 128 bytes =  4 sectors, every byte used
    lanes far apart   32 sectors = 1024 bytes, 4 of each 32 used: 8x the sectors

Program `pid` takes the 1024 elements from pid * 1024 on. As the compiler can see that neighbours are adjacent, it
also lets each lane load 16 bytes at once: a warp then asks for 512 bytes in one instruction.

Predict before you measure: each byte is moved once and nothing is computed to speak of. What share of the memory's
bandwidth should this reach?
"""

import torch
import triton
import triton.language as tl


def inputs(n=67_108_864, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def reference(x):
    return x * x


def cost(x):
    return {"dram_bytes": 2 * x.nbytes}  # read x, write y


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
