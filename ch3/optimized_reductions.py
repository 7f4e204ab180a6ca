"""One idea for four reductions, over rows, columns or all: lanes side by side in memory, 16 bytes an access.

Problem: over the rows, `baseline_reductions.py` uses 4 bytes of each sector that it asks for.

Idea: over the columns a program takes a row, and its lanes combine their values at the end. Over the rows of a large
matrix they need not: a lane owns some columns, and walks down a stripe, a run of rows. A second launch reduces the
results of all stripes; these are few, so there several lanes share a column. At 8192 x 8192 in float32:

    over columns    a row a program                 its lanes read 16 bytes each, side by side
    over rows       128 rows by 512 bytes a program so do 32 lanes; each asks for eight rows before it adds the first
                    then 64 rows of results         1/128 of the matrix, written once and read once

Stripes are shorter where there are fewer columns, and few long rows are cut in pieces, so that more SMs have work. Over
the columns a program holds a row of up to 8192 elements, or several short ones: all loads are in flight.

A lane loads 16 bytes at once only from a multiple of 16. If a row's length is a multiple of 16, Triton knows that all
rows begin at one. It loads other rows by the element, or with a few of them. Instead:

    over rows       of two launches: 8 rows of float16, of any length, end at a multiple of 16 bytes: they count as one
                    row. Of short rows more do, so that all lanes have work. The rows that are left are read apart
    over all        such a matrix, or one of short rows, counts as one row. Its last elements are read apart

`evict_first` says that an element is read once, so L2 may drop it before others.
Cost: over the rows, of pieces and over all, a second launch, or more. It takes most of the time where there is little
to read. So up to 256 rows, and up to 4096 of few columns, take one: a program holds all rows of a few columns, and its
lanes add their values at the end. At 512 x 512 it has four: two programs ask for each sector. In rows of 256 KiB and
more a lane owns columns again. Over the rows and of pieces, from capability 9.0 on, the second launch's programs come
to the SMs while the first one's still run, and wait. Each length up to 8192 of held columns needs a kernel.

Predict: how many times faster than the baseline is it over the columns, where both read side by side, and over the
rows of 512 x 512?
"""

import torch
import triton
import triton.language as tl
from one_launch_reduction import HELD, SMS, held_columns, held_rows
from reduction_ops import AXES, EMPTY, finish, take
from row_reduction import early, over_columns

PROGRAMS = 8 * SMS  # of four warps, about; over rows four times as many, of one warp
BLOCK = 512  # bytes: 32 lanes * 16
SMALL = 2**33  # rows * rows * columns that one launch reads sooner than two: 2048 x 2048, 512 x 32768 (on an H100)
WIDE = range(2**18, 2**31)  # bytes of a row whose blocks are enough programs, and whose columns 32 bits can number
LARGE = 2**25  # `evict_first` gains above this / bytes of an element: 8 MiB of float32, 16 of 16 bits (on an H100)
SEEN = 16  # Triton sees that a row's length is a multiple of it; else a lane reads its elements one by one


def inputs(op="sum", over="rows", rows=8192, columns=8192, dtype="float32", device="cuda"):
    x = torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device)
    return {"op": op, "over": over, "x": x + 0.1 if over == "all" else x}  # one sum near 0 would have no right digits


@triton.jit
def over_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, scale, init_max, other,
    OP: tl.constexpr, STRIPE: tl.constexpr, BLOCK_N: tl.constexpr, UNROLL: tl.constexpr,
    GROUP: tl.constexpr, EVICT: tl.constexpr, OVERLAP: tl.constexpr = False,
):  # fmt: skip
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()  # the next launch's programs may come to the SMs, and wait
        tl.extra.cuda.gdc_wait()  # until all programs of the launch before have written
    n_left, n_rows, n_cols = n_rows % GROUP * n_cols, n_rows // GROUP, n_cols * GROUP  # left: of rows in no group
    num_pid_n = tl.cdiv(n_cols, BLOCK_N)  # programs side by side
    pid_m, cols = tl.program_id(0) // num_pid_n, tl.program_id(0) % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc_max, acc_sum = tl.full((1, BLOCK_N), init_max, tl.float32), tl.zeros((1, BLOCK_N), tl.float32)
    first_row = pid_m.to(tl.int64) * STRIPE  # 64 bits: there may be 2^31 rows
    stripe_rows = tl.cast(min(n_rows - first_row, STRIPE), tl.int32)
    x_ptr += first_row * n_cols
    for start in range(0, stripe_rows, UNROLL):
        for i in tl.static_range(UNROLL):  # UNROLL loads that wait for nothing
            row = start + i
            ptrs = x_ptr + tl.cast(row, tl.int64) * n_cols + cols
            mask = (row < stripe_rows) & (cols < n_cols)
            x = tl.load(ptrs, mask=mask, other=other, eviction_policy=EVICT).to(tl.float32)
            acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    if GROUP > 1:
        ptrs = x_ptr + tl.cast(stripe_rows, tl.int64) * n_cols + cols
        mask = (cols < n_left) & (first_row + STRIPE >= n_rows)  # after the last stripe
        acc_max, acc_sum = take(acc_max, acc_sum, tl.load(ptrs, mask=mask, other=other).to(tl.float32), OP)
    result = finish(acc_max, acc_sum, scale, OP)[None, :]
    tl.store(out_ptr + pid_m.to(tl.int64) * n_cols + cols, result, mask=cols < n_cols)


def over_rows(op, x, scale, dtype, stripe, unroll=8, group=1, overlap=False, after=False):
    stripes, block = max(triton.cdiv(len(x) // group, stripe), 1), BLOCK // x.element_size()
    out = torch.empty(stripes * group, x.shape[1], dtype=dtype, device=x.device)
    grid = (stripes * triton.cdiv(group * x.shape[1], block),)
    evict = "evict_first" if x.nbytes > LARGE // x.element_size() else ""
    pdl = early(overlap, after)  # after: another launch, with which it overlaps
    over_rows_kernel[grid](
        x, out, *x.shape, scale, *EMPTY[op], op, stripe, block, unroll, group, evict, num_warps=1, **pdl
    )
    return out


def reduced(op, x, axis, dtype, overlap=False):
    scale, op = (1 / x.shape[axis] if x.shape[axis] else float("nan"), "sum") if op == "mean" else (1.0, op)
    (rows, columns), odd = x.shape, x.shape[1] % SEEN > 0
    if axis == 1:
        if 0 < columns <= HELD:
            return held_columns(op, x, scale, dtype)
        pieces = min(PROGRAMS // max(rows, 1), triton.cdiv(columns, 2048)) if columns > HELD else 1
        if pieces > 1:  # a row of few and long ones is shared by several programs
            x = over_columns(op, x, 1.0, torch.float32, pieces, odd and rows == 1, overlap).view(rows, pieces)
        return over_columns(op, x, scale, dtype, 1, overlap=overlap and pieces > 1, after=True)
    if 16 < rows <= 256 and not odd and columns * x.element_size() in WIDE:
        return over_rows(op, x, scale, dtype, triton.next_power_of_2(rows))[0]
    after = False  # no launch before this one
    while len(x) > (256 if len(x) * x.numel() > SMALL else 4096):
        block = BLOCK // x.element_size()
        group = 16 // x.element_size() if odd else 1  # rows of any length: so many end at a multiple of 16 bytes
        while group * columns < 4 * block and len(x) >= 32 * group:
            group *= 2
        stripes = max(4 * PROGRAMS // max(triton.cdiv(group * columns, block), 1), 1)
        unroll = 16 if group > 1 else 8
        stripe = max(triton.next_power_of_2(triton.cdiv(len(x) // group, stripes)), unroll)
        x = over_rows(op, x, 1.0, torch.float32, stripe, unroll, group, overlap, after)
        after = overlap
    return held_rows(op, x, scale, dtype, after)


def setup(op, over, x):
    return {"overlap": x.is_cuda and torch.cuda.get_device_capability(x.device) >= (9, 0)}


def run(op, over, x, overlap):
    x = x.contiguous()
    if over == "all" and (x.shape[1] % SEEN or x.shape[1] < 1024):  # no matter in which rows
        return reduced(op, x.view(1, x.numel()), 1, x.dtype, overlap)[0]
    if over == "all":  # over the columns, then over the results
        return reduced(op, reduced(op, x, 1, torch.float32)[None], 1, x.dtype)[0]
    return reduced(op, x, AXES[over], x.dtype, overlap)
