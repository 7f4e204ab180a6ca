"""Reductions over the columns of long rows, or of the results of pieces: a program takes a row or a piece of one."""

import torch
import triton
import triton.language as tl
from launches import launch, next_power_of_2
from one_launch_reduction import SMS
from reduction_ops import EMPTY, finish, take


@triton.jit
def over_columns_kernel(
    x_ptr, out_ptr, n_cols, scale, init_max, other,
    OP: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr, PEEL: tl.constexpr, OVERLAP: tl.constexpr = False,
):  # fmt: skip
    if OVERLAP:  # as in `optimized_reductions_tuned.py`
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row, piece = tl.program_id(0) // PIECES, tl.program_id(0) % PIECES
    if not PEEL:  # of a single row: there Triton still knows that x_ptr is a multiple of 16 bytes
        x_ptr += row.to(tl.int64) * n_cols
    acc_max, acc_sum = tl.full((BLOCK,), init_max, tl.float32), tl.zeros((BLOCK,), tl.float32)
    # 64 bits: near 2^31 the sum of two indices is beyond
    end = tl.cast(n_cols, tl.int64)
    if PEEL:  # a mask that ends anywhere would make all loads narrow: whole blocks need none
        end = end // BLOCK * BLOCK
        offsets = end + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=(offsets < n_cols) & (piece == 0), other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    for start in range(piece * BLOCK, end, PIECES * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        if PEEL:
            x = tl.load(x_ptr + offsets).to(tl.float32)
        else:
            x = tl.load(x_ptr + offsets, mask=offsets < n_cols, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + tl.program_id(0), finish(acc_max, acc_sum, scale, OP))


def early(overlap, after):
    """Options of a launch that overlaps with the one after it; after: and with the one before it."""
    return {"OVERLAP": True, "launch_pdl": after} if overlap else {}


def over_columns(op, x, scale, dtype, pieces, peel=False, overlap=False, after=False):
    out = torch.empty(len(x) * pieces, dtype=dtype, device=x.device)
    warps = 4
    if len(out) <= SMS:  # nothing else hides the time of a load: as few loads in sequence as possible
        warps = min(max(next_power_of_2(x.shape[1]) // 256, warps), 32)
    constants, options = (op, pieces, 256 * warps, peel), {"num_warps": warps, **early(overlap, after)}
    launch(over_columns_kernel, (len(out),), x, out, x.shape[1], scale, *EMPTY[op], *constants, **options)
    return out
