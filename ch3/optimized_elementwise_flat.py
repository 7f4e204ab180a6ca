"""Apply an operation to every element of a vector, as Triton's first tutorial does: 16 bytes an access, into `out`.

Problem: `baseline_elementwise.py` starts a program for every 128 elements, and divides for each of them.

Idea: the matrix is taken as the vector that it is in memory, as in `optimized_add_flat.py` (one that is not contiguous
is copied first; `out` is contiguous):

    offsets = pid * BLOCK + (0, 1, ... BLOCK - 1)    one addition for all elements of a lane, no division
    a lane's elements are adjacent                   16 bytes an access: 4 float32, 8 float16

Cost: the same bytes, and fewer instructions. In the machine code for compute capability 9.0 (--xray), an element takes
4 to be moved, and besides

    exp     5
    gelu    32, with an erf, as its definition has it

Memory has time for 56 an element of float32, 28 of float16, by an H200's datasheet (4.8 TB/s, 67 TFLOP/s).

Predict: for which of the two, and in which type, does this version take longer than its bytes?
"""

import torch
import triton
import triton.language as tl
from operations import BINARY, POSITIVE, SCALARS, apply


def inputs(op="gelu", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`y`: a matrix, a number or None, as the operation needs it."""
    draw, least = (torch.rand, 0.5) if op in POSITIVE else (torch.randn, 0.0)
    x, y = (draw(rows, columns, dtype=getattr(torch, dtype), device=device) + least for _ in range(2))
    return {"op": op, "x": x, "y": y if op in BINARY else SCALARS.get(op), "out": torch.empty_like(x)}


@triton.jit
def elementwise_kernel(x_ptr, y, out_ptr, n, OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # 64 bits: n may exceed 2^31
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if Y_IS_MATRIX:
        y = tl.load(y + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, apply(x, y, OP), mask=mask)


def run(op, x, y, out):
    n = x.numel()
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    y = y.contiguous() if op in BINARY else y
    block = 4096 // x.element_size()  # 128 lanes * 2 * 16 bytes
    grid = (triton.cdiv(n, block),)
    elementwise_kernel[grid](x.contiguous(), y, out, n, op, op in BINARY, BLOCK=block, num_warps=4)
    return out
