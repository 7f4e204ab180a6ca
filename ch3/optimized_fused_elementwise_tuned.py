"""The chain in one kernel for any width of a row: matrices are vectors, and every lane moves 16 bytes of them.

Problem: `optimized_fused_elementwise_fused.py` gives a program a part of one row. A row of 768 columns leaves a quarter
of its lanes idle, and rows of odd length begin at no multiple of 16 bytes: lanes move their elements one by one.

Idea: each matrix is taken as a vector of n elements, and a program does 2 KiB of it, wherever rows begin. What that
takes, and what for:

    offset % columns                  finds the column whose scale and shift an element needs
    `multiple_of`, `max_contiguous`   tell the compiler that columns are adjacent in groups of UNIT, the largest of 1,
                                      2, 4, 8 and 16 that divides `columns`; it does not see that behind a %. If UNIT
                                      is 8 (in float32: 4) or more, a lane loads 16 bytes of each vector at a time
    n % 16                            the last elements apart: then the mask ends at a multiple of 16 elements
    few elements                      each lane takes one: many lanes with one are faster than few with eight
    `n_cols` a constexpr              compiled for each number of columns: then % is no division

Cost: as the version before it: 3 matrices, and 2 * 2 KiB of the vectors beside 3 * 2 KiB of matrices.

Predict: at 4096 columns both versions have all lanes at work, 16 bytes each. Is this one faster there?
"""

from math import gcd

import torch
import triton
import triton.language as tl

VERSUS = "fused"
FEW = 2**14  # elements: if there are no more, a lane moves only one, and no last ones are done separately


def inputs(rows=8192, columns=4096, dtype="float32", device="cuda"):
    like = {"dtype": getattr(torch, dtype), "device": device}
    x, gate = torch.randn(rows, columns, **like), torch.randn(rows, columns, **like)
    return {"x": x, "gate": gate, "w_scale": torch.randn(columns, **like), "w_shift": torch.randn(columns, **like)}


@triton.jit
def chain_block(x_ptr, gate_ptr, scale_ptr, shift_ptr, out_ptr, offsets, cols, mask):
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr + cols, mask=mask).to(tl.float32)
    shift = tl.load(shift_ptr + cols, mask=mask).to(tl.float32)
    scaled = scale * x + shift
    tl.store(out_ptr + offsets, scaled / (1 + tl.exp(-scaled)) * gate + x, mask=mask)


@triton.jit
def chain_kernel(
    x_ptr, gate_ptr, scale_ptr, shift_ptr, out_ptr, n, n_cols: tl.constexpr,
    BLOCK: tl.constexpr, UNIT: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0).to(tl.int64) * BLOCK  # 64 bits: a matrix may have more than 2^31 elements
    offsets, first = start + tl.arange(0, BLOCK), start % n_cols
    if n_cols < 2**30:  # in 32 bits, % of a row that is longer than BLOCK is a subtraction and a minimum
        first = first.to(tl.int32)
    cols = (first + tl.arange(0, BLOCK)) % n_cols
    # start and n_cols are multiples of UNIT: no group of UNIT goes beyond the end of a row
    cols = tl.max_contiguous(tl.multiple_of(cols, UNIT), UNIT)
    chain_block(x_ptr, gate_ptr, scale_ptr, shift_ptr, out_ptr, offsets, cols, offsets < n)
    if TAIL > 0 and start == 0:  # one program takes the last elements, too
        last = n + tl.arange(0, 16)
        chain_block(x_ptr, gate_ptr, scale_ptr, shift_ptr, out_ptr, last, last % n_cols, last < n + TAIL)


def run(x, gate, w_scale, w_shift):
    rows, columns = x.shape
    y = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
    # Many: 2 KiB for 128 lanes. A mask that ends at a multiple of 16 has all 16 bytes of a lane inside, or outside
    block, tail = (128, 0) if x.numel() <= FEW else (2048 // x.element_size(), x.numel() % 16)
    arguments = (tensor.contiguous() for tensor in (x, gate, w_scale, w_shift))
    if n := x.numel() - tail:
        chain_kernel[(triton.cdiv(n, block),)](
            *arguments, y, n, columns, BLOCK=block, UNIT=gcd(columns, 16), TAIL=tail, num_warps=4
        )
    return y
