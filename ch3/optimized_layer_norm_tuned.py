"""Layer norm in one pass at any width: rows, warps and registers are chosen by the row's length, type and number.

Problem: `optimized_layer_norm_registers.py` gives every row one program with 32 elements a thread. Of 256 columns a
lane has a quarter of the loads; of 16,384 columns a row takes all registers of an SM; where rows are few, SMs wait.

Idea: the same pass, with a layout for each case, and what it is for:

    256 columns           32 threads for four rows: of one row each lane would make only one load
    17 columns            128 threads for 32 rows: a warp alone would make 32 loads of 2 bytes
    float32, 1024 to      16 elements in each thread: registers are left for weight and bias, which are then loaded
    8192 columns          before the sums, so that they are there when the sums are
    few rows (no more     8 elements a thread (more beyond 8192 columns), weight and bias before the sums: each row's
    programs than SMs)    chain of loads and sums is the limit, not the bandwidth
    16,384 columns        at most 64 registers a thread, so that two rows share an SM
    odd rows              `max_contiguous` says how many elements of weight and bias are read at once

Cost: 2 elements moved for each one; a kernel for each width, type and case.

Predict: the baseline's second and third read come from L2 at 8192 columns, and from memory at 16,384. By how much more
is this version ahead at the second?
"""

from math import gcd

import torch
import triton
import triton.language as tl

VERSUS = "cached"
EPS = 1e-5
ELEMENTS, FEW = 32, 8  # of a row that a thread holds; FEW: where rows are few
HALF = range(1024, 8193)  # columns: in float32 a thread holds half as many elements, and also weight and bias
NARROW = 32  # columns: of 17 columns of float16 a warp would make 32 loads of 2 bytes; four warps share them
REGISTERS = 64  # a thread's at most, so that 1024 threads share an SM: two rows of 16,384


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = 3 + torch.randn(rows, columns, device=device)  # a mean that is not 0, as after a residual
    w_weight, w_bias = torch.randn(columns, device=device), torch.randn(columns, device=device)
    dtype = getattr(torch, dtype)
    return {"x": x.to(dtype), "w_weight": w_weight.to(dtype), "w_bias": w_bias.to(dtype)}


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, n_rows, n_cols: tl.constexpr, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    # Weight and bias are read as rows can be. x takes no such hint: with a VECTOR of 1 lanes would lie across the rows
    weight_cols = tl.max_contiguous(tl.arange(0, BLOCK), VECTOR)[None, :]
    row_start = rows.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    if EARLY:
        weight = tl.load(weight_ptr + weight_cols, mask=cols < n_cols).to(tl.float32)
        bias = tl.load(bias_ptr + weight_cols, mask=cols < n_cols).to(tl.float32)
    mean = tl.sum(x, 1, keep_dims=True) / n_cols
    diff = tl.where(cols < n_cols, x - mean, 0.0)  # lanes beyond the row hold 0, which is not the mean
    rstd = tl.rsqrt(tl.sum(diff * diff, 1, keep_dims=True) / n_cols + eps)
    if not EARLY:  # hidden before the sums, but with 32 elements a thread has no registers to spare there
        weight = tl.load(weight_ptr + weight_cols, mask=cols < n_cols).to(tl.float32)
        bias = tl.load(bias_ptr + weight_cols, mask=cols < n_cols).to(tl.float32)
    tl.store(y_ptr + row_start + cols, diff * rstd * weight + bias, mask=mask)


def run(x, w_weight, w_bias):
    x, w_weight, w_bias = x.contiguous(), w_weight.contiguous(), w_bias.contiguous()
    y = torch.empty_like(x)
    rows, columns = x.shape
    if y.numel():
        block = triton.next_power_of_2(columns)
        sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
        is_few = rows <= sms * max(32 * ELEMENTS // block, 1)
        elements = ELEMENTS // 2 if columns in HALF and x.element_size() == 4 else ELEMENTS
        elements = FEW if is_few else elements
        rows_at_once = max(32 * elements // block, 1)
        warps = 4 if block <= NARROW and not is_few else min(max(block // (32 * elements), 1), 32)
        layer_norm_kernel[(triton.cdiv(rows, rows_at_once),)](
            x,
            w_weight,
            w_bias,
            y,
            rows,
            columns,
            EPS,
            ROWS=rows_at_once,
            BLOCK=block,
            VECTOR=gcd(columns, 16 // x.element_size()),
            EARLY=rows_at_once * block <= 32 * warps * ELEMENTS // 2,
            num_warps=warps,
            maxnreg=REGISTERS,
        )
    return y
