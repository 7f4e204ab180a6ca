"""Reductions at any shape: 16 bytes an access whatever a row's length, and enough programs however few rows there are.

Problem: `optimized_reductions_stripes.py` has one layout for all matrices. It reads rows of odd length by the element,
leaves SMs idle where a matrix is small or has few long rows, and loads one tile before it asks for the next.

Idea: a layout for each shape. Each case, and what it is for:

    over rows, large      32 lanes * 16 bytes of a row, eight rows asked for at once: many loads in flight
    over rows, up to      one launch: a program holds all rows of a few columns (up to 256 rows, and up to 4096 of few
    4096 of few columns   columns): a second launch would take most of the time
    over columns          a program holds a row of up to 8192 elements, or several short ones
    few long rows         are cut in pieces, a program for each
    odd rows, over rows   8 rows of float16, of any length, end at a multiple of 16 bytes: they count as one row, since
                          Triton sees such ends only if 16 divides a row's length. The rows left are read apart
    odd rows, over all    the matrix counts as one row. Its last elements are read apart
    two launches          from capability 9.0 on, the second is launched early, and waits (PDL)
    `evict_first`         an element is read once, so L2 may drop it before others

Cost: a kernel for each length up to 8192 of held columns, four files, and Python that chooses. Two launches read the
results of the first once more: at 8192 x 8192 these are 1/128 of the matrix.

Predict: how many times faster than the baseline is it over the columns, where both read side by side, and over the
rows of 512 x 512?
"""

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2
from one_launch_reduction import HELD, SMS, held_columns, held_rows
from reduction_ops import AXES, EMPTY, finish, take
from row_reduction import early, over_columns

VERSUS = "stripes"
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
    stripes, block = max(cdiv(len(x) // group, stripe), 1), BLOCK // x.element_size()
    out = torch.empty(stripes * group, x.shape[1], dtype=dtype, device=x.device)
    grid = (stripes * cdiv(group * x.shape[1], block),)
    evict = "evict_first" if x.nbytes > LARGE // x.element_size() else ""
    pdl = early(overlap, after)  # after: another launch, with which it overlaps
    constants = op, stripe, block, unroll, group, evict
    launch(over_rows_kernel, grid, x, out, *x.shape, scale, *EMPTY[op], *constants, num_warps=1, **pdl)
    return out


def reduced(op, x, axis, dtype, overlap=False):
    scale, op = (1 / x.shape[axis] if x.shape[axis] else float("nan"), "sum") if op == "mean" else (1.0, op)
    (rows, columns), odd = x.shape, x.shape[1] % SEEN > 0
    if axis == 1:
        if 0 < columns <= HELD:
            return held_columns(op, x, scale, dtype)
        pieces = min(PROGRAMS // max(rows, 1), cdiv(columns, 2048)) if columns > HELD else 1
        if pieces > 1:  # a row of few and long ones is shared by several programs
            x = over_columns(op, x, 1.0, torch.float32, pieces, odd and rows == 1, overlap).view(rows, pieces)
        return over_columns(op, x, scale, dtype, 1, overlap=overlap and pieces > 1, after=True)
    if 16 < rows <= 256 and not odd and columns * x.element_size() in WIDE:
        return over_rows(op, x, scale, dtype, next_power_of_2(rows))[0]
    after = False  # no launch before this one
    while len(x) > (256 if len(x) * x.numel() > SMALL else 4096):
        block = BLOCK // x.element_size()
        group = 16 // x.element_size() if odd else 1  # rows of any length: so many end at a multiple of 16 bytes
        while group * columns < 4 * block and len(x) >= 32 * group:
            group *= 2
        stripes = max(4 * PROGRAMS // max(cdiv(group * columns, block), 1), 1)
        unroll = 16 if group > 1 else 8
        stripe = max(next_power_of_2(cdiv(len(x) // group, stripes)), unroll)
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
