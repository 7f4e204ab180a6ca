"""The squared distance of two vectors: each program adds its part to one sum. On a GPU parts can get lost.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device), "y": torch.randn(n, device=device)}


@triton.jit
def distance_kernel(x_ptr, y_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    part = tl.sum((x - y) * (x - y), 0)
    total = tl.load(total_ptr)
    tl.store(total_ptr, total + part)


def run(x, y):
    n = x.numel()
    total = torch.zeros(1, device=x.device)
    distance_kernel[(triton.cdiv(n, 1024),)](x, y, total, n, BLOCK=1024)
    return total
