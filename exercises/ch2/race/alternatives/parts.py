"""Each program stores its part to an element of its own; a second launch adds the parts up."""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {"x": torch.randn(n, device=device), "y": torch.randn(n, device=device)}


@triton.jit
def distance_kernel(x_ptr, y_ptr, parts_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(parts_ptr + pid, tl.sum((x - y) * (x - y), 0))


@triton.jit
def total_kernel(parts_ptr, total_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        acc += tl.load(parts_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(total_ptr, tl.sum(acc, 0))


def run(x, y):
    n = x.numel()
    programs = triton.cdiv(n, 1024)
    parts, total = torch.empty(programs, device=x.device), torch.empty(1, device=x.device)
    distance_kernel[(programs,)](x, y, parts, n, BLOCK=1024)
    total_kernel[(1,)](parts, total, programs, BLOCK=1024)
    return total
