"""Reductions over more than 512 rows in two launches: a program takes 512 rows, so 8192 have 16 times the programs.

Problem: in `optimized_reductions_adjacent.py` a program has all rows of 128 bytes of columns. A matrix of 8192 x 128 in
float32 has four such programs, and an H200 has 132 SMs.

Idea: cut the rows into stripes. A program reduces the rows of one stripe, and a second launch of the same kernel
reduces the stripes' results, which stand one below another like rows:

    8192 x 128 of float32    16 stripes * 4 blocks of columns = 64 programs, still fewer than SMs; then 16 rows
    8192 x 8192              16 stripes * 256 blocks = 4096 programs; then 16 rows

Up to 512 rows are one stripe and one launch. A mean divides in the last launch only: the stripes leave sums.

Cost: a second launch; and the stripes' results, in float32, are written once and read once. They have 1/512 of the
matrix's bytes, in 16 bits 1/256.

Predict: at 8192 x 8192 `adjacent` has 256 programs for 132 SMs, with 16 KiB in flight for each. Are stripes faster
there, too?
"""

import torch
import triton
import triton.language as tl
from reduction_ops import AXES, EMPTY, finish, take

VERSUS = "adjacent"
STRIPE = 512  # rows of a program: four tiles


def inputs(op="sum", over="rows", rows=8192, columns=8192, dtype="float32", device="cuda"):
    x = torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device)
    return {"op": op, "over": over, "x": x + 0.1 if over == "all" else x}  # one sum near 0 would have no right digits


@triton.jit
def over_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stripe, scale, init_max, other,
    OP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    num_pid_n = tl.cdiv(n_cols, BLOCK_N)
    pid_m, pid_n = (tl.program_id(0) // num_pid_n).to(tl.int64), (tl.program_id(0) % num_pid_n).to(tl.int64)
    rows = tl.arange(0, BLOCK_M).to(tl.int64)[:, None]  # 64 bits: a matrix may have more than 2^31 elements
    cols = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc_max, acc_sum = tl.full((BLOCK_M, BLOCK_N), init_max, tl.float32), tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(pid_m * stripe, min((pid_m + 1) * stripe, n_rows), BLOCK_M):
        mask = (start + rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + (start + rows) * n_cols + cols, mask=mask, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + pid_m * n_cols + cols, finish(acc_max, acc_sum, scale, OP)[None, :], mask=cols < n_cols)


@triton.jit
def over_columns_kernel(x_ptr, out_ptr, n_cols, scale, init_max, other, OP: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * n_cols
    acc_max, acc_sum = tl.full((BLOCK,), init_max, tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.cast(n_cols, tl.int64), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + tl.program_id(0), finish(acc_max, acc_sum, scale, OP))


def over_rows(op, x, scale, dtype, stripes):
    """The result of each stripe of rows, one below another."""
    out, block = torch.empty(stripes, x.shape[1], dtype=dtype, device=x.device), 128 // x.element_size()
    stripe, grid = STRIPE if stripes > 1 else len(x), (stripes * triton.cdiv(x.shape[1], block),)
    over_rows_kernel[grid](x, out, *x.shape, stripe, scale, *EMPTY[op], op, BLOCK_M=128, BLOCK_N=block, num_warps=4)
    return out


def reduced(op, x, axis, dtype):
    length = x.shape[axis]
    scale, op = (1 / length if length else float("nan"), "sum") if op == "mean" else (1.0, op)
    if axis == 0:
        if length > STRIPE:
            x = over_rows(op, x, 1.0, torch.float32, triton.cdiv(length, STRIPE))
        return over_rows(op, x, scale, dtype, 1)[0]
    out = torch.empty(len(x), dtype=dtype, device=x.device)
    over_columns_kernel[(len(x),)](x, out, length, scale, *EMPTY[op], op, BLOCK=1024, num_warps=4)
    return out


def run(op, over, x):
    x = x.contiguous()
    if over == "all":  # over the columns, then over the results
        return reduced(op, reduced(op, x, 1, torch.float32)[None], 1, x.dtype)[0]
    return reduced(op, x, AXES[over], x.dtype)
