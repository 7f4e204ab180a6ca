"""RMS norm in one pass at any width: rows and warps are chosen by the row's length and type.

Problem: `optimized_rms_norm_registers.py` gives every row one program with 32 elements a thread. Of 256 columns a lane
has a quarter of the loads.

Idea: the same pass, with a layout for each case, and what it is for:

    256 columns           32 threads for four rows: of one row each lane would make only one load
    17 columns            128 threads for 32 rows: a warp alone would make 32 loads of 2 bytes
    float32, 1024 to      16 elements in each thread, which needs fewer registers: more warps fit an SM, but fewer rows.
    2048 columns          Which of the two is faster was only measured
    odd rows              `max_contiguous` says how many elements of weight are read at once
    weight                before the sum, and `evict_last`: all rows need it

Cost: 2 elements moved for each one; a kernel for each width and type.

Predict: at 768 columns `registers` has 32 threads for a row in both types. What does this version have in float32, and
is it faster?
"""

from math import gcd

import torch
import triton
import triton.language as tl

VERSUS = "cached"
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
