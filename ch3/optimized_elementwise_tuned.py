"""Apply an operation to every element of a vector of any length, with an erf short enough for 16 bits.

Problem: in float16 gelu's erf makes `optimized_elementwise_flat.py` spend more instructions on an element than memory
has time for; and where 16 does not divide the number of elements, lanes load them one by one.

Idea: two cases, and what they are for:

    gelu      22 instructions with the shorter and coarser `upper_tail`, 32 with an erf; both besides 4 for moving
    n % 16    the last elements apart, and few elements under one mask: as in `optimized_add_tuned.py`

Cost: the same bytes. The shorter formula is within 3e-7, an erf within 0.6e-7; 16 bits round far more coarsely.

Predict: `library` is torch's exp and gelu. For which of the two, and in which type, is it slower than this version?
"""

import torch
import triton
import triton.language as tl
from operations import BINARY, POSITIVE, SCALARS, apply

VERSUS = "flat"
FEW = 2**14  # elements: up to so many share one mask, as in `optimized_add_tuned.py`


def inputs(op="gelu", rows=8192, columns=8192, dtype="float32", device="cuda"):
    """`y`: a matrix, a number or None, as the operation needs it."""
    draw, least = (torch.rand, 0.5) if op in POSITIVE else (torch.randn, 0.0)
    x, y = (draw(rows, columns, dtype=getattr(torch, dtype), device=device) + least for _ in range(2))
    return {"op": op, "x": x, "y": y if op in BINARY else SCALARS.get(op), "out": torch.empty_like(x)}


@triton.jit
def upper_tail(x):
    """Probability that a standard normal variable is larger than x, within 3e-7: Abramowitz and Stegun, 26.2.17.

    Computed exactly it is within 7.5e-8. (1 + erf) / 2 in float32 is within 0.6e-7, for half as many instructions more.
    """
    t = 1 / (1 + 0.2316419 * tl.abs(x))
    polynomial = t * (0.127414796 + t * (-0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145))))
    tail = polynomial * tl.exp2(-0.7213475204444817 * x * x)  # exp(-x^2 / 2); the 1 / sqrt(2 pi) is in the polynomial
    return tl.where(x > 0, tail, 1 - tail)


@triton.jit
def apply_shorter(x, y, OP: tl.constexpr):
    if OP == "gelu":
        z = x * upper_tail(-x)  # = x / 2 * (1 + erf(x / sqrt(2)))
    else:
        z = apply(x, y, OP)
    return z


@triton.jit
def apply_block(x_ptr, y, out_ptr, start, n, OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, BLOCK: tl.constexpr):
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if Y_IS_MATRIX:
        y = tl.load(y + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, apply_shorter(x, y, OP), mask=mask)


@triton.jit
def elementwise_kernel(
    x_ptr, y, out_ptr, n, OP: tl.constexpr, Y_IS_MATRIX: tl.constexpr, BLOCK: tl.constexpr, TAIL: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK  # 64 bits: n may exceed 2^31
    apply_block(x_ptr, y, out_ptr, start, n, OP, Y_IS_MATRIX, BLOCK)
    if TAIL > 0 and start == 0:  # one program takes the last elements, too, as in `optimized_add_tuned.py`
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
