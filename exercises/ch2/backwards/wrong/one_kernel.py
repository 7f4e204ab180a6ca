"""Divide a vector by its root mean square: two kernels, and both go from the first block to the last.

Yours: the kernels and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device)}


@triton.jit
def divide_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + lanes, mask=start + lanes < n, other=0.0)
        acc += x * x
    offsets = tl.program_id(0) * BLOCK + lanes
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x / tl.sqrt(tl.sum(acc, 0) / n), mask=offsets < n)


def run(x):
    n = x.numel()
    y = torch.empty_like(x)
    divide_kernel[(triton.cdiv(n, 2048),)](x, y, n, BLOCK=2048)
    return y
