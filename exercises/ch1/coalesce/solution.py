"""Sums of squares of points: one load takes all four numbers of a program's points, so a sector is asked for once.

The load has offsets of two dimensions, [BLOCK, 4]. Triton gives each thread one point: 16 bytes, one instruction.
Then `tl.sum` along axis 1 needs no other thread. Four loads of one number each would touch each sector four times,
because the numbers of a point lie in the same 16 bytes.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 1000}, "check/one": {"n": 1}, "check/ragged": {"n": 1025}, "check/long": {"n": 5003},
    "count": {"n": 8192}, "default": {"n": 16_777_216},
}  # fmt: skip


def inputs(n, device="cuda"):
    return {"points": torch.randn(n, 4, device=device)}


def reference(points):
    return (points * points).sum(1)


def cost(points):
    return {"dram_bytes": points.nbytes + points.nbytes // 4}


@triton.jit
def lengths_kernel(points_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = 4 * rows[:, None] + tl.arange(0, 4)[None, :]
    x = tl.load(points_ptr + offsets, mask=rows[:, None] < n, other=0.0)
    tl.store(out_ptr + rows, tl.sum(x * x, axis=1), mask=rows < n)


def run(points):
    n = points.shape[0]
    out = torch.empty(n, device=points.device)
    lengths_kernel[(triton.cdiv(n, 256),)](points, out, n, BLOCK=256)
    return out
