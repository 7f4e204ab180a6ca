"""Divide a vector by its root mean square, with a sum for each program in place of atomic additions.

Yours: the kernels and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device)}


@triton.jit
def sum_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        acc += x * x
    tl.store(sums_ptr + tl.program_id(0), tl.sum(acc, 0))


@triton.jit
def divide_kernel(x_ptr, sums_ptr, y_ptr, n, programs, SUMS: tl.constexpr, BLOCK: tl.constexpr):
    last = tl.cdiv(n, BLOCK) - 1
    offsets = (last - tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + tl.arange(0, SUMS), mask=tl.arange(0, SUMS) < programs, other=0.0)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x / tl.sqrt(tl.sum(sums, 0) / n), mask=offsets < n)


def run(x):
    n = x.numel()
    blocks = triton.cdiv(n, 2048)
    programs = min(blocks, 1024)
    y, sums = torch.empty_like(x), torch.empty(programs, device=x.device)
    sum_kernel[(programs,)](x, sums, n, BLOCK=2048)
    divide_kernel[(blocks,)](x, sums, y, n, programs, SUMS=1024, BLOCK=2048)
    return y
