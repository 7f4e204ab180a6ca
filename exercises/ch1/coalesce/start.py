"""Sums of squares of points, with four loads of one number each: every sector is asked for four times.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {"points": torch.randn(n, 4, device=device)}


@triton.jit
def lengths_kernel(points_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(4):
        x = tl.load(points_ptr + 4 * rows + i, mask=rows < n)
        total += x * x
    tl.store(out_ptr + rows, total, mask=rows < n)


def run(points):
    n = points.shape[0]
    out = torch.empty(n, device=points.device)
    lengths_kernel[(triton.cdiv(n, 256),)](points, out, n, BLOCK=256)
    return out
