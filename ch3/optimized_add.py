"""Add two matrices as the vectors they are in memory: 16 bytes an access, eight elements a lane, into `out`.

A contiguous matrix is a vector, and the sum of two needs neither rows nor columns. Program `pid` adds the 1024
elements from pid * 1024 on; the compiler sees that neighbours are adjacent, so a lane moves 16 bytes at once:

    4 warps * 32 lanes * 16 bytes = 2048 bytes an instruction: two loads of x and two of y before the first addition

Four times fewer instructions for the same bytes, no division, and each lane has 64 bytes in flight where it had 8.
`out` is there before the call: nothing is allocated. (Other layouts are copied first: `contiguous` does nothing here.)

Predict before you measure: memory delivers whole sectors to `baseline_add.py` too. Is what is saved time, or only
instructions? Is `library` faster than this at any size?
"""

import torch
import triton
import triton.language as tl


def inputs(rows=8192, columns=8192, dtype="float32", device="cuda"):
    x, y = (torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device) for _ in range(2))
    return {"x": x, "y": y, "out": torch.empty_like(x)}


def reference(x, y, out):
    return x + y


def library(x, y, out):
    return torch.add(x, y, out=out)


def cost(x, y, out):
    return {"dram_bytes": 3 * x.nbytes}  # read x and y, write the sum


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64 bits: n may exceed 2^31
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def run(x, y, out):
    n = x.numel()
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    add_kernel[(triton.cdiv(n, 1024),)](x.contiguous(), y.contiguous(), out, n, BLOCK=1024, num_warps=4)
    return out
