"""One idea for four reductions, over rows or columns: a program a result, whose lanes walk along what is reduced.

Problem: over the rows there is a result for each column, over the columns one for each row. A program computes one. Its
lanes stand `stride_xk` elements apart along the axis that is reduced, walk it in blocks of 1024, and combine their
values at the end. It is the same kernel for both axes, with other strides. In float32:

    over columns    stride 1          32 lanes * 16 bytes = 16 sectors of 32 bytes, every byte used
    over rows       stride `columns`  32 lanes in 32 rows = 32 sectors, 4 bytes used of each
    over all        two launches: over the columns, then one program over the results of all rows

Cost: over the rows a program uses 4 bytes of a sector of 32. So eight programs ask for each sector, one for each of its
columns; if a cache still holds it, memory moves it once.

Predict: `optimized_reductions_adjacent.py` puts lanes side by side in both cases. How many times faster is it over the
rows, if sectors are the limit and the caches keep nothing?
"""

import torch
import triton
import triton.language as tl
from compiled import compiled
from reduction_ops import AXES, EMPTY, TORCH, finish, take

SIZES = {
    "check": {"op": "sum", "over": "rows", "rows": 127, "columns": 33},
    "check/max/rows": {"op": "max", "over": "rows", "rows": 1100, "columns": 35},  # several stripes
    "check/mean/rows/fp16": {"op": "mean", "over": "rows", "rows": 1025, "columns": 67, "dtype": "float16"},
    "check/logsumexp/rows": {"op": "logsumexp", "over": "rows", "rows": 517, "columns": 3},
    "check/sum/columns": {"op": "sum", "over": "columns", "rows": 3, "columns": 1025},
    "check/max/columns": {"op": "max", "over": "columns", "rows": 3, "columns": 1025},
    "check/logsumexp/columns/bf16": {"op": "logsumexp", "over": "columns", "rows": 5, "columns": 127,
                                     "dtype": "bfloat16"},
    "check/mean/all": {"op": "mean", "over": "all", "rows": 1, "columns": 1},
    "check/sum/all": {"op": "sum", "over": "all", "rows": 9, "columns": 1025},
    "check/max/all": {"op": "max", "over": "all", "rows": 9, "columns": 1025},
    "check/tuned/odd/fp16": {"op": "sum", "over": "rows", "rows": 517, "columns": 33, "dtype": "float16"},
    "check/tuned/groups/fp16": {"op": "mean", "over": "rows", "rows": 4201, "columns": 33, "dtype": "float16"},
    "check/tuned/odd/wide": {"op": "sum", "over": "rows", "rows": 257, "columns": 1025},
    "check/tuned/tall": {"op": "sum", "over": "rows", "rows": 9001, "columns": 2},  # 35 rows of 256, and 41 rows left
    "check/tuned/pieces": {"op": "mean", "over": "columns", "rows": 2, "columns": 17_001},
    "check/tuned/stripes": {"op": "max", "over": "rows", "rows": 4100, "columns": 48},
    "check/tuned/long/fp16": {"op": "logsumexp", "over": "rows", "rows": 4200, "columns": 3, "dtype": "float16"},
    "default": {"op": "sum", "over": "rows"},  # 8192 x 8192, as the large ones: 256 MiB, larger than any L2
    "large/sum/columns": {"over": "columns"}, "count": {"rows": 8192, "columns": 128},
}  # fmt: skip


def inputs(op="sum", over="rows", rows=8192, columns=8192, dtype="float32", device="cuda"):
    x = torch.randn(rows, columns, dtype=getattr(torch, dtype), device=device)
    return {"op": op, "over": over, "x": x + 0.1 if over == "all" else x}  # one sum near 0 would have no right digits


def reference(op, over, x):
    return TORCH[op](x, AXES[over])


def library(op, over, x):
    return TORCH[op](x, AXES[over])


def library_compiled(op, over, x):
    return compiled(library, x, op, over)(op, over, x)


def cost(op, over, x):
    return {"dram_read_bytes": x.nbytes}  # once; the result is small


@triton.jit
def reduce_kernel(
    x_ptr, out_ptr, n, stride_xk, stride_xm, scale, init_max, other, OP: tl.constexpr, BLOCK: tl.constexpr
):
    x_ptr += tl.program_id(0).to(tl.int64) * stride_xm
    acc_max, acc_sum = tl.full((BLOCK,), init_max, tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, tl.cast(n, tl.int64), BLOCK):  # 64 bits: near 2^31 the sum of two indices is beyond
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets * stride_xk, mask=offsets < n, other=other).to(tl.float32)
        acc_max, acc_sum = take(acc_max, acc_sum, x, OP)
    tl.store(out_ptr + tl.program_id(0), finish(acc_max, acc_sum, scale, OP))


def reduced(op, x, axis, dtype):
    length, results = x.shape[axis], x.shape[1 - axis]
    out = torch.empty(results, dtype=dtype, device=x.device)
    scale, op = (1 / length if length else float("nan"), "sum") if op == "mean" else (1.0, op)
    strides = x.stride(axis), x.stride(1 - axis)
    reduce_kernel[(results,)](x, out, length, *strides, scale, *EMPTY[op], op, BLOCK=1024, num_warps=4)
    return out


def run(op, over, x):
    if over == "all":  # over the columns, then over the results
        return reduced(op, reduced(op, x, 1, torch.float32)[None], 1, x.dtype)[0]
    return reduced(op, x, AXES[over], x.dtype)
