"""RMS norm of every row in one pass: a row is read into registers, and each element is read once and written once.

Problem: `baseline_rms_norm.py` reads a row twice.

Idea: y = x / sqrt(mean(x^2) + eps) * weight, along a row. Between the mean of the squares and the result the row stays
in the registers of its threads. In 16 bits a thread has 32 elements:

    1024 columns     32 threads    a warp: its lanes add among themselves
    8192 columns    256 threads    8 warps, which exchange their sums once, through shared memory
    256 columns      32 threads    four rows to a warp; of one row each lane would make only one load
    17 columns      128 threads    32 rows, 8 elements in each thread

In float32 the first row differs. A thread holds 16 elements of a row of 1024 to 2048 columns, so 1024 columns have 64
threads. Such a thread needs fewer registers: more warps fit an SM, but fewer rows, since each has twice as many warps.
Which of the two layouts is faster, we have only measured.

Cost: 2 elements moved instead of 3. The block is the next power of two; its lanes beyond the row hold zeros.

Predict: at 1024 columns the baseline has 8 rows of 4 KiB in flight in an SM, and L1 has 256 KiB. How many times faster
is this version there?
"""

from math import gcd

import torch
import triton
import triton.language as tl

EPS = 1e-5
ELEMENTS = 32  # of a row that a thread holds: 8 loads of 16 bytes in float32, 4 in 16 bits
HALF = range(1024, 2049)  # columns: in float32 a thread holds half as many elements of such a row
NARROW = 32  # columns: of 17 columns of float16 a warp would make 32 loads of 2 bytes; four warps share them


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, w_weight = torch.randn(rows, columns, device=device), torch.randn(columns, device=device)
    return {"x": x.to(getattr(torch, dtype)), "w_weight": w_weight.to(getattr(torch, dtype))}


@triton.jit
def rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, n_rows, n_cols: tl.constexpr, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    # Weight is read as rows can be. x takes no such hint: with a VECTOR of 1 a warp's lanes would lie across the rows
    weight_cols = tl.max_contiguous(tl.arange(0, BLOCK), VECTOR)[None, :]
    row_start = rows.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + weight_cols, mask=cols < n_cols, eviction_policy="evict_last").to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, 1, keep_dims=True) / n_cols + eps)
    tl.store(y_ptr + row_start + cols, x * rstd * weight, mask=mask)


def run(x, w_weight):
    x, w_weight = x.contiguous(), w_weight.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        elements = ELEMENTS // 2 if columns in HALF and x.element_size() == 4 else ELEMENTS
        rows_at_once = max(32 * elements // block, 1)
        warps = 4 if block <= NARROW else min(max(block // (32 * elements), 1), 32)
        grid, vector = (triton.cdiv(rows, rows_at_once),), gcd(columns, 16 // x.element_size())
        rms_norm_kernel[grid](
            x, w_weight, y, rows, columns, EPS, ROWS=rows_at_once, BLOCK=block, VECTOR=vector, num_warps=warps
        )
    return y
