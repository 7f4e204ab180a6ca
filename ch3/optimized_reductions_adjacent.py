"""Reductions over rows by tiles: the lanes of a program stand side by side along a row, and walk down together.

Problem: over the rows, `baseline_reductions.py` uses 4 bytes of each sector of 32 that it asks for.

Idea: a program takes 128 bytes of columns, all of them, and not one. Eight lanes read a row's 128 bytes, 16 bytes each;
so a tile of 128 rows and 32 columns of float32 is read at a time. Each lane keeps a partial result for each of its
columns. At the end the partial results of a column, from all lanes that have it, become one:

    lanes 0 ... 7     row 0    [16 bytes][16 bytes] ... [16 bytes]     four sectors, every byte used
    lanes 8 ... 15    row 1    [16 bytes][16 bytes] ... [16 bytes]

Over the columns nothing changes: there the baseline's lanes are side by side already.

Cost: the bytes of the matrix, once. But a program has all rows of its columns, so there are few programs: 256 where the
matrix has 8192 columns, 4 where it has 128, for 132 SMs.

Predict: over the rows of 8192 x 8192, is it 8 times as fast as the baseline, as the sectors say?
"""

import torch
import triton
import triton.language as tl
from reduction_ops import AXES, EMPTY, finish, take


def inputs(op="sum", over="rows", rows=8192, columns=8192, dtype="float32", device="cuda"):
    x = torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device)
    return {"op": op, "over": over, "x": x + 0.1 if over == "all" else x}  # one sum near 0 would have no right digits


@triton.jit
def over_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, scale, init_max, other,
    OP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    rows = tl.arange(0, BLOCK_M).to(tl.int64)[:, None]  # 64 bits: a matrix may have more than 2^31 elements
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc_max, acc_sum = tl.full((BLOCK_M, BLOCK_N), init_max, tl.float32), tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, tl.cast(n_rows, tl.int64), BLOCK_M):
        mask = (start + rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + (start + rows) * n_cols + cols, mask=mask, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + cols, finish(acc_max, acc_sum, scale, OP)[None, :], mask=cols < n_cols)


@triton.jit
def over_columns_kernel(x_ptr, out_ptr, n_cols, scale, init_max, other, OP: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * n_cols
    acc_max, acc_sum = tl.full((BLOCK,), init_max, tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.cast(n_cols, tl.int64), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + tl.program_id(0), finish(acc_max, acc_sum, scale, OP))


def reduced(op, x, axis, dtype):
    (rows, columns), length = x.shape, x.shape[axis]
    out = torch.empty(x.shape[1 - axis], dtype=dtype, device=x.device)
    scale, op = (1 / length if length else float("nan"), "sum") if op == "mean" else (1.0, op)
    if axis == 1:
        over_columns_kernel[(rows,)](x, out, columns, scale, *EMPTY[op], op, BLOCK=1024, num_warps=4)
    else:
        block = 128 // x.element_size()  # columns: four whole sectors of a row
        grid = (triton.cdiv(columns, block),)
        over_rows_kernel[grid](x, out, rows, columns, scale, *EMPTY[op], op, BLOCK_M=128, BLOCK_N=block, num_warps=4)
    return out


def run(op, over, x):
    x = x.contiguous()
    if over == "all":  # over the columns, then over the results
        return reduced(op, reduced(op, x, 1, torch.float32)[None], 1, x.dtype)[0]
    return reduced(op, x, AXES[over], x.dtype)
