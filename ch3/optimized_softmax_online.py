"""Softmax of long rows in two passes instead of three: maximum and sum are found together (online softmax).

Problem: at 65,536 columns the registers of `optimized_softmax_registers.py` are too few for a row. Without registers,
`baseline_softmax.py` reads the row for the maximum, for the sum and for the result.

Idea: a running sum can be kept while the maximum is still unknown. When a larger one appears, the sum so far is scaled:

    sum <- sum * exp(old maximum - new maximum) + sum of exp(x - new maximum)

A program walks its row in blocks of 4096, and finds both in one pass. A second pass writes the result. However long
a row is, a thread holds four elements of it.

Cost: 3 elements moved for each one, the second read from L2 if it still has the row. Two programs of 1024 threads fit
an SM, so few rows are in flight:

    65,536 columns of float32, two programs on each of 132 SMs    2 * 132 * 256 KiB = 66 MiB, and L2 has 60

Every block waits for its maximum and its sum across all lanes, and its loads wait for that.

Predict: which of the two is faster at 16,384 columns, `registers` or this version, and which at 65,536?
"""

import torch
import triton
import triton.language as tl

VERSUS = "registers"
BLOCK = 4096  # of a row at a time: 4 elements a thread


def inputs(rows=4096, columns=16_384, dtype="float32", device="cuda"):
    return {"x": torch.randn(rows, columns, device=device).to(getattr(torch, dtype))}


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    cols = tl.arange(0, BLOCK)
    row_max, row_sum = float("-inf"), 0.0  # so far
    for off in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row_start + off + cols, mask=off + cols < n_cols, other=float("-inf")).to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(x, 0))
        safe_max = tl.where(new_max == float("-inf"), 0.0, new_max)  # -inf - -inf would be NaN
        row_sum = row_sum * tl.exp(row_max - safe_max) + tl.sum(tl.exp(x - safe_max), 0)
        row_max = new_max
    for off in range(0, n_cols, BLOCK):
        mask = off + cols < n_cols
        x = tl.load(x_ptr + row_start + off + cols, mask=mask).to(tl.float32)
        tl.store(y_ptr + row_start + off + cols, tl.exp(x - row_max) * (1 / row_sum), mask=mask)


def run(x):
    x = x.contiguous()
    y, (rows, columns) = torch.empty_like(x), x.shape
    if y.numel():
        softmax_kernel[(rows,)](x, y, columns, BLOCK=BLOCK, num_warps=32)
    return y
