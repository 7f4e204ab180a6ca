"""Layer norm backward of rows too wide for one program: two share the columns, and each reads the other's columns once.

Problem: at 16,384 columns `optimized_layer_norm_backward.py` has to hold 320 KiB, and an SM has 256 KiB of registers.

Idea: two programs share a row. Each keeps dweight and dbias of its own columns, at most 8192, in registers:

    16,384 columns    5 values of 4 bytes for each are 320 KiB
    its 8192          160 KiB

The two means are of whole rows. So a program reads the rest of the row too, and keeps of it only what it adds to the
two sums. The two programs of a row run at the same time, and what one reads from DRAM the other finds in L2.

Cost: every element of x and dy goes from L2 to two SMs: 5 elements instead of 3, and weight is read anew for each row.
Up to 8192 columns a row has one part and nothing is shared, but weight is still read for each row, and no later
row is loaded ahead.

Predict: at 8192 columns, is it faster than `optimized_layer_norm_backward.py`, as fast, or slower: in float32, and in
float16?
"""

import torch
import triton
import triton.language as tl
from partial_sums import add_kernel, add_pairs

VERSUS = ""
ELEMENTS = 16  # of a row that a thread has, of x, dy, weight (read for each row), dweight and dbias
WIDEST = 8192  # of a row that a program keeps: 5 * 4 bytes for each are 160 of an SM's 256 KiB of registers
REGISTERS = 128  # a thread's at most: 512 threads share an SM


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = (3 + torch.randn(rows, columns, device=device)).to(getattr(torch, dtype))
    w_weight, dy = torch.randn(columns, device=device), torch.randn(rows, columns, device=device)
    mean = x.float().mean(1, keepdim=True)  # float32, as the forward saves them
    rstd = torch.rsqrt(x.float().var(1, correction=0, keepdim=True) + 1e-5)
    return {"x": x, "w_weight": w_weight.to(x.dtype), "mean": mean, "rstd": rstd, "dy": dy.to(x.dtype)}


@triton.jit
def layer_norm_backward_kernel(
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


def run(x, w_weight, mean, rstd, dy):
    x, w_weight, mean, rstd, dy = (each.contiguous() for each in (x, w_weight, mean, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    total = torch.empty(2, columns, dtype=w_weight.dtype, device=x.device)  # dweight, dbias
    if not x.numel():
        return dx, *total.zero_()
    block = min(triton.next_power_of_2(columns), WIDEST)
    parts = triton.cdiv(columns, block)
    warps = min(max(block // (32 * ELEMENTS), 1), 32)
    sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    programs = min(rows, max(sms * (WIDEST // block) // parts, 1))
    sums = torch.empty(2, programs, columns, device=x.device) if programs > 1 else total
    tensors = (x, w_weight, mean, rstd, dy, dx, sums)
    layer_norm_backward_kernel[(programs * parts,)](
        *tensors, rows, columns, BLOCK=block, PARTS=parts, num_warps=warps, maxnreg=min(REGISTERS, 2048 // warps)
    )
    if programs > 1:
        add_kernel[(triton.cdiv(columns, 16), 2)](sums, total, programs, columns, ROWS=256, COLUMNS=16, num_warps=8)
    return dx, *total
