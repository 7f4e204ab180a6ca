"""Apply an operation to every element, two accesses of 16 bytes a lane, found by counting, into `out`.

Problem: `baseline_elementwise.py` starts a program for every 128 elements, and divides for each of them.

Idea: the matrix is taken as the vector that it is in memory, as in `optimized_add.py` (one that is not contiguous is
copied first; `out` is contiguous):

    offsets = pid * BLOCK + (0, 1, ... BLOCK - 1)    one addition for all elements of a lane, no division
    a lane's elements are adjacent                   16 bytes an access: 4 float32, 8 float16

Cost: the same bytes, and fewer instructions. In the machine code for compute capability 9.0 (--xray), an element takes
4 to be moved, and besides

    exp     5
    gelu    32 with an erf, as its definition has it; 22 with the shorter and coarser `upper_tail` that is used here

Memory has time for 56 an element of float32, 28 of float16, by an H200's datasheet (4.8 TB/s, 67 TFLOP/s).

Predict: `library` is torch's exp and gelu. For which of the two, and in which type, is it slower than this version?
"""

import torch
import triton
import triton.language as tl
from operations import BINARY, POSITIVE, SCALARS, apply

FEW = 2**14  # elements: up to so many share one mask, as in `optimized_add.py`


def inputs(op="gelu", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`y`: a matrix, a number or None, as the operation needs it."""
    draw, least = (torch.rand, 0.5) if op in POSITIVE else (torch.randn, 0.0)
    x, y = (draw(rows, columns, dtype=getattr(torch, dtype), device=device) + least for _ in range(2))
    return {"op": op, "x": x, "y": y if op in BINARY else SCALARS.get(op), "out": torch.empty_like(x)}


@triton.jit
def apply_block(x_ptr, y, out_ptr, start, n, OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, BLOCK: tl.constexpr):
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if Y_IS_MATRIX:
        y = tl.load(y + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, apply(x, y, OP), mask=mask)


@triton.jit
def elementwise_kernel(
    x_ptr, y, out_ptr, n, OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, BLOCK: tl.constexpr, TAIL: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK  # 64 bits: n may exceed 2^31
    apply_block(x_ptr, y, out_ptr, start, n, OP, Y_IS_MATRIX, BLOCK)
    if TAIL > 0 and start == 0:  # one program takes the last elements, too, as in `optimized_add.py`
        apply_block(x_ptr, y, out_ptr, n, n + TAIL, OP, Y_IS_MATRIX, 16)


def run(op, x, y, out):
    tail = x.numel() % 16 if x.numel() > FEW else 0
    n = x.numel() - tail
    if not out.is_contiguous():
        raise ValueError("out must be contiguous: it is written from end to end")
    y = y.contiguous() if op in BINARY else y
    block = 4096 // x.element_size()  # 128 lanes * 2 * 16 bytes
    grid = (triton.cdiv(n, block) or 1,)
    elementwise_kernel[grid](x.contiguous(), y, out, n, op, op in BINARY, BLOCK=block, TAIL=tail, num_warps=4)
    return out
