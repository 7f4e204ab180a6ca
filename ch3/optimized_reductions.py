"""One idea for four reductions, over rows, columns or all: lanes side by side in memory, 16 bytes an access.

Problem: over the rows, `baseline_reductions.py` uses 4 bytes of each sector that it asks for.

Idea: over the columns a program takes a row, and its lanes combine their values at the end. Over the rows they need
not: a lane has columns of its own and walks down a stripe of rows, eight at a time. A second launch reduces the
results of all stripes; these are few, so there several lanes share a column:

    over columns    a row a program                 128 lanes read 16 bytes each, side by side
    over rows       128 rows by 2 KiB a program     128 lanes do; eight rows are in flight before the first is added
                    then 64 rows of results         1/128 of the matrix, written once and read once

Stripes are shorter where there are fewer columns, and few long rows are cut in pieces, so that all SMs have work.

Cost: over the rows, and of pieces, a second launch. It takes longer than all else where there is little to read, so up
to 1024 rows of a small matrix are left to the narrow tiles: at 512 x 512 one launch of 64 programs. If the length
of a row is no multiple of 16, a lane reads one element at a time. Then 512 lanes do what 128 do, up to 2048 rows.

Predict: how many times faster than the baseline is it over the columns, where both read side by side, and over the
rows of 512 x 512?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled
from reducing import AXES, EMPTY, TORCH, finish, take

SMS = 128  # of most large GPUs, nearly
PROGRAMS = 8 * SMS  # at least, over rows and over few columns
SMALL = 2**20  # elements that one launch over up to 1024 (or 2048) rows reads sooner than a second launch would start
SEEN = 16  # Triton sees that a row's length is a multiple of it; else a lane reads its elements one by one


def inputs(op="sum", over="rows", rows=8192, columns=8192, dtype="float32", device="cuda"):
    return {"op": op, "over": over, "x": torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device)}


def reference(op, over, x):
    return TORCH[op](x, AXES[over])


def library(op, over, x):
    return TORCH[op](x, AXES[over])


def library_compiled(op, over, x):
    return compiled(library, x, op, over)(op, over, x)


def cost(op, over, x):
    return {"dram_bytes": x.nbytes}  # read x once; the result is small


@triton.jit
def over_columns_kernel(
    x_ptr, out_ptr, n_cols, scale, init_max, other, OP: tl.constexpr, PIECES: tl.constexpr, BLOCK: tl.constexpr
):
    row, piece = tl.program_id(0) // PIECES, tl.program_id(0) % PIECES
    x_ptr += row.to(tl.int64) * n_cols
    acc_max, acc_sum = tl.full((BLOCK,), init_max, tl.float32), tl.zeros((BLOCK,), tl.float32)
    # 64 bits: near 2^31 the sum of two indices is beyond
    for start in range(piece * BLOCK, tl.cast(n_cols, tl.int64), PIECES * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n_cols, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + tl.program_id(0), finish(acc_max, acc_sum, scale, OP))


@triton.jit
def over_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, scale, init_max, other,
    OP: tl.constexpr, STRIPE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    num_pid_n = tl.cdiv(n_cols, BLOCK_N)  # programs side by side
    pid_m, cols = tl.program_id(0) // num_pid_n, tl.program_id(0) % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc_max, acc_sum = tl.full((BLOCK_M, BLOCK_N), init_max, tl.float32), tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    first_row = pid_m.to(tl.int64) * STRIPE  # 64 bits: there may be 2^31 rows
    stripe_rows = tl.cast(min(n_rows - first_row, STRIPE), tl.int32)
    x_ptr += first_row * n_cols
    for start in range(0, stripe_rows, UNROLL * BLOCK_M):
        for i in tl.static_range(UNROLL):  # UNROLL loads that wait for nothing
            rows = start + i * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
            mask = (rows < stripe_rows) & (cols < n_cols)[None, :]
            x = tl.load(x_ptr + rows.to(tl.int64) * n_cols + cols[None, :], mask=mask, other=other).to(tl.float32)
            acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + pid_m.to(tl.int64) * n_cols + cols, finish(acc_max, acc_sum, scale, OP), mask=cols < n_cols)


def over_rows(op, x, scale, dtype, stripe, block_m, block_n, unroll, warps=4):
    out = torch.empty(max(triton.cdiv(len(x), stripe), 1), x.shape[1], dtype=dtype, device=x.device)
    grid = (len(out) * triton.cdiv(x.shape[1], block_n),)
    over_rows_kernel[grid](x, out, *x.shape, scale, *EMPTY[op], op, stripe, block_m, block_n, unroll, num_warps=warps)
    return out


def over_columns(op, x, scale, dtype, pieces):
    out = torch.empty(len(x) * pieces, dtype=dtype, device=x.device)
    warps = 4
    if len(out) <= SMS:  # nothing else hides the time of a load: as few of them after each other as can be
        warps = min(max(triton.next_power_of_2(x.shape[1]) // 256, warps), 32)
    over_columns_kernel[(len(out),)](
        x, out, x.shape[1], scale, *EMPTY[op], op, pieces, BLOCK=256 * warps, num_warps=warps
    )
    return out


def reduced(op, x, axis, dtype):
    scale, op = (1 / x.shape[axis] if x.shape[axis] else float("nan"), "sum") if op == "mean" else (1.0, op)
    if axis == 1:
        pieces = min(PROGRAMS // max(len(x), 1), triton.cdiv(x.shape[1], 8192))
        if pieces > 1:  # a row of few and long ones is shared by several programs
            x = over_columns(op, x, 1.0, torch.float32, pieces).view(len(x), pieces)
        return over_columns(op, x, scale, dtype, 1)
    odd = x.shape[1] % SEEN > 0
    while len(x) > (256 if x.numel() > SMALL else 2048 if odd else 1024):
        block_n = 2048 // x.element_size()  # 128 lanes * 16 bytes
        stripes = max(PROGRAMS // max(triton.cdiv(x.shape[1], block_n), 1), 1)
        stripe = max(triton.next_power_of_2(triton.cdiv(len(x), stripes)), 8)
        x = over_rows(op, x, 1.0, torch.float32, stripe, 1, block_n, unroll=8)
    stripe, block_m, block_n, unroll, warps = 256, 128, 16, 1, 4  # few rows are left: narrow tiles, all at once
    if len(x) <= 16:
        stripe, block_m, block_n, unroll = 16, 1, 2048 // x.element_size(), 8
    elif len(x) > 256 and odd:  # four times the lanes: each has few loads
        stripe, block_m, block_n, unroll, warps = 2048, 512, 8 if x.shape[1] <= 8 * SMS else 16, 4, 16
    elif len(x) > 256:
        stripe, block_m, block_n, unroll = 1024, 128, 32 // x.element_size(), 4  # a sector a row
    return over_rows(op, x, scale, dtype, stripe, block_m, block_n, unroll, warps)[0]


def run(op, over, x):
    x = x.contiguous()
    if over == "all":  # over the columns, then over the results
        return reduced(op, reduced(op, x, 1, torch.float32)[None], 1, x.dtype)[0]
    return reduced(op, x, AXES[over], x.dtype)
