"""Reduce a matrix over its rows or its columns with lanes side by side in memory: 16 bytes an access, either way.

Over the columns a program takes a row, and its lanes meet at the end. Over the rows they need not meet: a lane has
columns of its own and walks down a stripe of rows, eight at a time. A second launch reduces the results of all
stripes: few, so that its lanes share a column and do meet:

    over columns    a row a program                 128 lanes read 16 bytes each, side by side
    over rows       128 rows by 2 KiB a program     128 lanes do; eight rows are on their way before the first is added
                    then 64 rows of results         1/128 of the matrix, written once and read once

Stripes are shorter where there are fewer columns, so that all SMs have their share.

Predict before you measure: are both directions equally fast now? And for a matrix of 512 x 512, whose stripes
cannot be short enough?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled
from reducing import AXES, EMPTY, TORCH, finish, take

SIZES = {
    "check": {"op": "sum", "over": "rows", "rows": 127, "columns": 129},
    "check/one": {"op": "mean", "over": "all", "rows": 1, "columns": 1},
    "check/mean/rows": {"op": "mean", "over": "rows", "rows": 517, "columns": 33},
    "check/max/rows": {"op": "max", "over": "rows", "rows": 517, "columns": 33},
    "check/logsumexp/rows": {"op": "logsumexp", "over": "rows", "rows": 517, "columns": 33},
    "check/sum/columns": {"op": "sum", "over": "columns", "rows": 9, "columns": 1025},
    "check/mean/columns": {"op": "mean", "over": "columns", "rows": 9, "columns": 1025},
    "check/max/columns": {"op": "max", "over": "columns", "rows": 9, "columns": 1025},
    "check/logsumexp/columns": {"op": "logsumexp", "over": "columns", "rows": 9, "columns": 1025},
    "check/sum/all": {"op": "sum", "over": "all", "rows": 9, "columns": 1025},
    "check/mean/all": {"op": "mean", "over": "all", "rows": 9, "columns": 1025},
    "check/max/all": {"op": "max", "over": "all", "rows": 9, "columns": 1025},
    "check/fp16": {"op": "sum", "over": "rows", "rows": 300, "columns": 127, "dtype": "float16"},
    "check/bf16": {"op": "logsumexp", "over": "columns", "rows": 5, "columns": 127, "dtype": "bfloat16"},
    "default": {"op": "sum", "over": "rows"},  # 8192 x 8192, as the large ones: 256 MiB, larger than any L2
    "small/sum/rows": {"rows": 512, "columns": 512},
    "small/sum/columns": {"over": "columns", "rows": 512, "columns": 512},
    "medium/sum/rows": {"rows": 2048, "columns": 2048},
    "medium/sum/columns": {"over": "columns", "rows": 2048, "columns": 2048}, "large/sum/rows": {},
    "large/mean/rows": {"op": "mean"}, "large/max/rows": {"op": "max"}, "large/logsumexp/rows": {"op": "logsumexp"},
    "large/sum/columns": {"over": "columns"}, "large/mean/columns": {"op": "mean", "over": "columns"},
    "large/max/columns": {"op": "max", "over": "columns"},
    "large/logsumexp/columns": {"op": "logsumexp", "over": "columns"}, "large/sum/all": {"over": "all"},
    "large/mean/all": {"op": "mean", "over": "all"}, "large/max/all": {"op": "max", "over": "all"},
    "large/sum/rows/fp16": {"dtype": "float16"}, "large/sum/columns/fp16": {"over": "columns", "dtype": "float16"},
    "large/logsumexp/columns/fp16": {"op": "logsumexp", "over": "columns", "dtype": "float16"},
}  # fmt: skip
PROGRAMS = 1024  # at least, over rows: eight for each of 128 SMs


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
def across_kernel(x_ptr, out_ptr, columns, scale, least, empty, OP: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * columns
    largest, total = tl.full((BLOCK,), least, tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.cast(columns, tl.int64), BLOCK):  # 64 bits: near 2^31 the sum of two indices is beyond
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=empty).to(tl.float32)
        largest, total = take(largest, total, x, OP)
    tl.store(out_ptr + tl.program_id(0), finish(largest, total, scale, OP))


@triton.jit
def down_kernel(
    x_ptr, out_ptr, rows, columns, scale, least, empty,
    OP: tl.constexpr, STRIPE: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, WIDE)  # programs side by side
    stripe, column = tl.program_id(0) // across, tl.program_id(0) % across * WIDE + tl.arange(0, WIDE)
    largest, total = tl.full((TALL, WIDE), least, tl.float32), tl.zeros((TALL, WIDE), tl.float32)
    first = stripe.to(tl.int64) * STRIPE  # 64 bits: there may be 2^31 rows
    height = tl.cast(min(rows - first, STRIPE), tl.int32)
    x_ptr += first * columns
    for start in range(0, height, DEEP * TALL):
        for i in tl.static_range(DEEP):  # DEEP loads that wait for nothing
            row = start + i * TALL + tl.arange(0, TALL)[:, None]
            inside = (row < height) & (column < columns)[None, :]
            x = tl.load(x_ptr + row.to(tl.int64) * columns + column[None, :], mask=inside, other=empty).to(tl.float32)
            largest, total = take(largest, total, x, OP)
    tl.store(out_ptr + stripe.to(tl.int64) * columns + column, finish(largest, total, scale, OP), mask=column < columns)


def down(op, x, scale, dtype, stripe, tall, wide, deep):
    out = torch.empty(max(triton.cdiv(len(x), stripe), 1), x.shape[1], dtype=dtype, device=x.device)
    grid = (len(out) * triton.cdiv(x.shape[1], wide),)
    down_kernel[grid](x, out, *x.shape, scale, *EMPTY[op], op, stripe, tall, wide, deep, num_warps=4)
    return out


def reduced(op, x, axis, dtype):
    scale, op = (1 / x.shape[axis] if x.shape[axis] else float("nan"), "sum") if op == "mean" else (1.0, op)
    if axis == 1:
        out = torch.empty(len(x), dtype=dtype, device=x.device)
        across_kernel[(len(x),)](x, out, x.shape[1], scale, *EMPTY[op], op, BLOCK=1024, num_warps=4)
        return out
    while len(x) > 256:
        wide = 2048 // x.element_size()  # 128 lanes * 16 bytes
        stripes = max(PROGRAMS // triton.cdiv(x.shape[1], wide), 1)
        stripe = max(triton.next_power_of_2(triton.cdiv(len(x), stripes)), 8)
        x = down(op, x, 1.0, torch.float32, stripe, 1, wide, deep=8)
    return down(op, x, scale, dtype, 256, 128, 16, deep=1)[0]  # little is left: a narrow tile, and most of it at once


def run(op, over, x):
    x = x.contiguous()
    if over == "all":  # over the columns, then over the results
        return reduced(op, reduced(op, x, 1, torch.float32)[None], 1, x.dtype)[0]
    return reduced(op, x, AXES[over], x.dtype)
