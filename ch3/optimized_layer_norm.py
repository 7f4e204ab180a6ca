"""Layer norm of every row in one pass: a row is read into registers, and each element is read once and written once.

Problem: `baseline_layer_norm.py` reads a row three times.

Idea: mean, variance and result are computed from the registers that hold the row. In 16 bits a thread has 32 elements:

    1024 columns     32 threads    a warp: its lanes add among themselves
    8192 columns    256 threads    8 warps, which exchange their sums twice, through shared memory
    256 columns      32 threads    four rows to a warp; of one row each lane would make only one load
    17 columns      128 threads    32 rows, 8 elements in each thread

In float32 the first two rows differ. A thread holds 16 elements of a row of 1024 to 8192 columns, so 1024 columns have
64 threads, and 8192 have 512. Such a thread has registers left for weight and bias, and loads them before the sums.
(Of 16,384 columns one row would need all registers of an SM. With 32 elements in each thread, two rows fit.)

Where the programs of the table are no more than the SMs, bandwidth is not the limit: each row's chain of loads and sums
is. So a thread gets 8 elements (more beyond 8192 columns: a program has 1024 threads at most), and weight and bias are
loaded before the sums.

Cost: 2 elements moved instead of 4. The block is the next power of two. Its lanes beyond the row must count neither in
the mean, where a zero adds nothing, nor in the variance, where a zero would be as far off as the mean is. Every program
also reads weight and bias, 2 rows for each row of x; all programs read the same, so these come from a cache.

Predict: at 4096 x 8192 the baseline has 8 rows of 32 KiB in flight on each of an H200's 132 SMs, 33 MiB, and an H200
has 60 MiB of L2. Is this version still twice as fast?
"""

from math import gcd

import torch
import triton
import triton.language as tl

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
