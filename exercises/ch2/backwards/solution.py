"""Divide a vector by its root mean square: the second kernel goes over the vector in the opposite order.

When `sum_kernel` has ended, L2 holds the end of x. A pass from the beginning asks first for what was dropped first.
Each sector that it loads then takes the place of one that it would have needed later. So it finds nothing, even if
the cache is only a little too small. A pass from the end begins with what is there. The result takes places, too: for
each sector of x that is found, a sector of y is written. The gain is a part of L2's size, whatever the size of x. It
is large where x is not many times as large as L2. It is small where x is much larger, and nothing where L2 holds all
of it.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 5000}, "check/one": {"n": 1}, "check/whole": {"n": 4096}, "check/long": {"n": 16_385},
    "count": {"n": 16_384}, "default": {"n": 16_777_216},
}  # fmt: skip


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device)}


def reference(x):
    return x / (x * x).mean().sqrt()


def cost(x):
    return {"dram_bytes": 3 * x.nbytes}  # read x twice, write y


@triton.jit
def sum_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(total_ptr, tl.sum(x * x, 0))


@triton.jit
def divide_kernel(x_ptr, total_ptr, y_ptr, n, BLOCK: tl.constexpr):
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # the last block first: it was used last
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    rms = tl.sqrt(tl.load(total_ptr) / n)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x / rms, mask=offsets < n)


def run(x):
    n = x.numel()
    y, total = torch.empty_like(x), torch.zeros(1, device=x.device)
    grid = (triton.cdiv(n, 2048),)
    sum_kernel[grid](x, total, n, BLOCK=2048)
    divide_kernel[grid](x, total, y, n, BLOCK=2048)
    return y
