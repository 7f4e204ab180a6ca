"""RMS norm backward of rows too wide for one program: two share the columns, and each reads the other's columns once.

Problem: at 16,384 columns `optimized_rms_norm_backward.py` has to hold 256 KiB, all the registers that an SM has.

Idea: two programs share a row. Each keeps dweight of its own columns, at most 8192, in registers:

    16,384 columns    4 values of 4 bytes for each are 256 KiB
    its 8192          128 KiB

The mean is of the whole row. So a program reads the rest of the row too, and keeps of it only what it adds to the sum.
The two programs of a row run at the same time, and what one reads from DRAM the other finds in L2.

Cost: every element of x and dy goes from L2 to two SMs: 5 elements instead of 3, and weight is read anew for each row.
Up to 8192 columns a row has one part and nothing is shared, but weight is still read for each row, and no later
row is loaded ahead.

Predict: say that L2 moves twice as many bytes a second as memory (chapter 2 measures it). With 5 elements between L2
and the SMs and 3 between memory and L2, which of the two is the limit at 16,384 columns?
"""

import torch
import triton
import triton.language as tl
from partial_sums import add_kernel

VERSUS = ""
ELEMENTS = 8  # of a row that a thread has, of x, dy, weight (read for each row) and dweight
WIDEST = 8192  # of a row that a program keeps: 4 * 4 bytes for each are 128 of an SM's 256 KiB of registers
REGISTERS = 64  # a thread's at most: 1024 threads share an SM


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, dy = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    w_weight = torch.randn(columns, device=device).to(x.dtype)
    rstd = torch.rsqrt(x.float().square().mean(1, keepdim=True) + 1e-5)  # float32, as the forward saves it
    return {"x": x, "w_weight": w_weight, "rstd": rstd, "dy": dy}


@triton.jit
def rms_norm_backward_kernel(
    x_ptr, w_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr,
    n_rows, n_cols: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    pid_n, pid_m, num_pid_m = tl.program_id(0) % PARTS, tl.program_id(0) // PARTS, tl.num_programs(0) // PARTS
    offsets = tl.max_contiguous(tl.arange(0, BLOCK), 4)  # 4 side by side, as float32 sums are stored
    cols = pid_n * BLOCK + offsets
    mask = cols < n_cols
    dweight = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(pid_m, n_rows, num_pid_m):
        row_start = tl.cast(row, tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
        rstd = tl.load(rstd_ptr + row)
        x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0)
        c1 = tl.zeros((BLOCK,), tl.float32)
        for shift in tl.static_range(BLOCK, PARTS * BLOCK, BLOCK):
            rest_cols = tl.multiple_of((pid_n * BLOCK + shift) % (PARTS * BLOCK), 16) + offsets
            x_rest = tl.load(x_ptr + row_start + rest_cols, mask=rest_cols < n_cols, other=0.0).to(tl.float32)
            g_rest = tl.load(dy_ptr + row_start + rest_cols, mask=rest_cols < n_cols, other=0.0).to(tl.float32)
            g_rest *= tl.load(w_ptr + rest_cols, mask=rest_cols < n_cols, other=0.0, eviction_policy="evict_last")
            c1 += g_rest * (x_rest * rstd)
        weight = tl.load(w_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        dy = dy.to(tl.float32)
        x_hat = x.to(tl.float32) * rstd
        g = dy * weight
        dx = (g - x_hat * (tl.sum(c1 + g * x_hat, 0) / n_cols)) * rstd
        tl.store(dx_ptr + row_start + cols, dx, mask=mask)
        dweight += dy * x_hat
    tl.store(sums_ptr + pid_m * n_cols + cols, dweight, mask=mask)


def run(x, w_weight, rstd, dy):
    x, w_weight, rstd, dy = (each.contiguous() for each in (x, w_weight, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    dweight = torch.empty(columns, dtype=w_weight.dtype, device=x.device)
    if not x.numel():
        return dx, dweight.zero_()
    block = min(triton.next_power_of_2(columns), WIDEST)
    parts = triton.cdiv(columns, block)
    warps = min(max(block // (32 * ELEMENTS), 1), 32)
    sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    programs = min(rows, max(sms * (WIDEST // block) // parts, 1))
    sums = torch.empty(programs, columns, device=x.device) if programs > 1 else dweight
    tensors = (x, w_weight, rstd, dy, dx, sums)
    rms_norm_backward_kernel[(programs * parts,)](
        *tensors, rows, columns, BLOCK=block, PARTS=parts, num_warps=warps, maxnreg=min(REGISTERS, 2048 // warps)
    )
    if programs > 1:
        add_kernel[(triton.cdiv(columns, 16), 1)](sums, dweight, programs, columns, ROWS=256, COLUMNS=16, num_warps=8)
    return dx, dweight
