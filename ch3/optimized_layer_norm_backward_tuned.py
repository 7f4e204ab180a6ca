"""Layer norm backward at any width: a program keeps sums of whole rows, or shares a row, with rows loaded ahead.

Problem: in `optimized_layer_norm_backward_partial.py` and `_split.py` a program waits for each row before it asks for
the next, and the sums of all programs are added by a kernel of torch's, which knows nothing of their shape.

Idea: the same two layouts, with what each needs, and what for:

    up to 8192 columns     a program has whole rows. The loads of the next two are in flight, into shared memory, while
                           this one is worked on (num_stages=3, where there are such rows and they fit)
    wider rows             are shared. `weight` is read for each row, `evict_last`: registers are for the sums
    float32, 2049 to       are worked on as wide rows are, in one part: a little faster, as measured on an H200
    4096 columns
    registers              of a thread are limited, so that as many programs fit an SM as are started
    two sums of a row      are added in one step (`add_pairs`): the lanes of a program meet once for both
    the second launch      `add_kernel`: 256 programs' sums of 16 columns at a time, or none if there is one program

Cost: 3 elements moved for each one, and for wide rows 5 between L2 and the SMs. Two kernels for each width.

Predict: at 8192 columns, is it faster than `split`, as fast, or slower: in float32, and in float16?
"""

import torch
import triton
import triton.language as tl
from launches import cdiv, launch, next_power_of_2
from partial_sums import add_kernel, add_pairs

VERSUS = "split"
ELEMENTS = 16  # of a row that a thread holds, of x, dy, weight and the sums
PER_SM = 8192  # elements of rows in flight in an SM: 5 * 4 bytes for each are 160 of its 256 KiB of registers
REGISTERS = 128  # a thread's at most: 512 threads share an SM
WIDEST = 8192  # of a row that a program keeps
SHARED_ELEMENTS = 16  # of a shared row that a thread has
SHARED_REGISTERS = 128  # a thread's at most: 512 threads share an SM


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = (3 + torch.randn(rows, columns, device=device)).to(getattr(torch, dtype))
    w_weight, dy = torch.randn(columns, device=device), torch.randn(rows, columns, device=device)
    mean = x.float().mean(1, keepdim=True)  # float32, as the forward saves them
    rstd = torch.rsqrt(x.float().var(1, correction=0, keepdim=True) + 1e-5)
    return {"x": x, "w_weight": w_weight.to(x.dtype), "mean": mean, "rstd": rstd, "dy": dy.to(x.dtype)}


@triton.jit
def rows_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr,
    n_rows, n_cols: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    cols = tl.max_contiguous(tl.arange(0, BLOCK), 4)  # 4 side by side, as float32 sums are stored
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight, dbias = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    row_start = tl.program_id(0).to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = (x - tl.load(mean_ptr + row)) * rstd  # beyond the row dy is 0, and all products with it
        g = dy * weight
        c1, c2 = tl.reduce((g * x_hat, g), 0, add_pairs)
        dx = (g - x_hat * (c1 / n_cols) - c2 / n_cols) * rstd
        tl.store(dx_ptr + row_start + cols, dx, mask=mask)
        dweight += dy * x_hat
        dbias += dy
        row_start += tl.num_programs(0) * n_cols
    sums_offsets = tl.program_id(0) * n_cols + cols
    tl.store(sums_ptr + sums_offsets, dweight, mask=mask)
    tl.store(sums_ptr + tl.num_programs(0) * n_cols + sums_offsets, dbias, mask=mask)


@triton.jit
def shared_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr,
    n_rows, n_cols: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    pid_n, pid_m, num_pid_m = tl.program_id(0) % PARTS, tl.program_id(0) // PARTS, tl.num_programs(0) // PARTS
    offsets = tl.max_contiguous(tl.arange(0, BLOCK), 4)  # 4 side by side, as float32 sums are stored
    cols = pid_n * BLOCK + offsets
    mask = cols < n_cols
    dweight, dbias = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(pid_m, n_rows, num_pid_m):
        row_start = tl.cast(row, tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0)
        c1, c2 = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        for shift in tl.static_range(BLOCK, PARTS * BLOCK, BLOCK):
            rest_cols = tl.multiple_of((pid_n * BLOCK + shift) % (PARTS * BLOCK), 16) + offsets
            x_rest = tl.load(x_ptr + row_start + rest_cols, mask=rest_cols < n_cols, other=0.0).to(tl.float32)
            g_rest = tl.load(dy_ptr + row_start + rest_cols, mask=rest_cols < n_cols, other=0.0).to(tl.float32)
            g_rest *= tl.load(w_ptr + rest_cols, mask=rest_cols < n_cols, other=0.0, eviction_policy="evict_last")
            c1 += g_rest * ((x_rest - mean) * rstd)
            c2 += g_rest
        weight = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        dy = dy.to(tl.float32)
        x_hat = (x.to(tl.float32) - mean) * rstd  # beyond the row dy is 0, and all products with it
        g = dy * weight
        c1, c2 = tl.reduce((c1 + g * x_hat, c2 + g), 0, add_pairs)
        dx = (g - x_hat * (c1 / n_cols) - c2 / n_cols) * rstd
        tl.store(dx_ptr + row_start + cols, dx, mask=mask)
        dweight += dy * x_hat
        dbias += dy
    sums_offsets = pid_m * n_cols + cols
    tl.store(sums_ptr + sums_offsets, dweight, mask=mask)
    tl.store(sums_ptr + num_pid_m * n_cols + sums_offsets, dbias, mask=mask)


def rows_layout(x, columns):
    """Of programs that have whole rows: how many, elements of a block, warps, rows in flight."""
    rows, block = len(x), next_power_of_2(columns)
    warps = min(max(block // (32 * ELEMENTS), 1), 32)
    gpu = None if x.is_cpu else torch.cuda.get_device_properties(x.device)
    sms, shared = (gpu.multi_processor_count, gpu.shared_memory_per_multiprocessor) if gpu else (2, 0)
    programs_per_sm = max(min(PER_SM // block, 16), 1)
    programs = min(rows, sms * programs_per_sm)
    fits = 4 * block * x.element_size() * programs_per_sm < shared
    return programs, block, warps, 3 if fits and rows > programs else 1  # two rows ahead, if there are and fit


def shared_layout(x, columns):
    """Of programs that share rows: how many for a part, elements of a block, warps, parts."""
    block = min(next_power_of_2(columns), WIDEST)
    parts = cdiv(columns, block)
    warps = min(max(block // (32 * SHARED_ELEMENTS), 1), 32)
    sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    return min(len(x), max(sms * (WIDEST // block) // parts, 1)), block, warps, parts


def run(x, w_weight, mean, rstd, dy):
    x, w_weight, mean, rstd, dy = (each.contiguous() for each in (x, w_weight, mean, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    total = torch.empty(2, columns, dtype=w_weight.dtype, device=x.device)  # dweight, dbias
    if not x.numel():
        return dx, *total.zero_()
    is_shared = columns > WIDEST or (x.element_size() == 4 and 2048 < columns <= 4096)
    programs, block, warps, more = (shared_layout if is_shared else rows_layout)(x, columns)
    sums = torch.empty(2, programs, columns, device=x.device) if programs > 1 else total
    tensors = (x, w_weight, mean, rstd, dy, dx, sums)
    if is_shared:
        registers = min(SHARED_REGISTERS, 2048 // warps)
        grid, options = (programs * more,), {"BLOCK": block, "PARTS": more, "num_warps": warps, "maxnreg": registers}
        launch(shared_kernel, grid, *tensors, rows, columns, **options)
    else:
        registers = min(REGISTERS, 2048 // warps)
        options = {"BLOCK": block, "STAGES": more, "num_warps": warps, "maxnreg": registers}
        launch(rows_kernel, (programs,), *tensors, rows, columns, **options)
    if programs > 1:
        grid, tile = (cdiv(columns, 16), 2), {"ROWS": 256, "COLUMNS": 16}
        launch(add_kernel, grid, sums, total, programs, columns, **tile, num_warps=8)
    return dx, *total
