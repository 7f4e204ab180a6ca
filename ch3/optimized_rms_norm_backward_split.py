"""RMS norm backward of rows too wide for one program: two share the columns, and each reads the other's columns once.

Problem: at 16,384 columns `optimized_rms_norm_backward_partial.py` has to hold 256 KiB, and an SM has 256 KiB of
registers.

Idea: two programs share a row. Each keeps dweight of its own columns, at most 8192, in registers:

    16,384 columns    4 values of 4 bytes for each are 256 KiB
    its 8192          128 KiB

The mean is of the whole row. So a program reads the rest of the row too, and keeps of it only what it adds to
the sum. The two programs of a row run at the same time, and what one reads from DRAM the other finds in L2.

Cost: every element of x and dy goes from L2 to two SMs: 5 elements instead of 3, and the rest's weights for each row.
Up to 8192 columns a row has one part, and nothing is shared.

Predict: say that L2 moves twice as many bytes a second as memory (chapter 2 measures it). With 5 elements between L2
and the SMs and 3 between memory and L2, which of the two is the limit at 16,384 columns?
"""

import torch
import triton
import triton.language as tl

VERSUS = "partial"
ELEMENTS = 16  # of a row that a thread holds, of x, dy, weight and the sums
WIDEST = 8192  # of a row that a program keeps: 4 * 4 bytes for each are 128 of an SM's 256 KiB of registers


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, dy = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    w_weight = torch.randn(columns, device=device).to(x.dtype)
    rstd = torch.rsqrt(x.float().square().mean(1, keepdim=True) + 1e-5)  # float32, as the forward saves it
    return {"x": x, "w_weight": w_weight, "rstd": rstd, "dy": dy}


@triton.jit
def rms_norm_backward_kernel(
    x_ptr, w_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr, n_rows, n_cols: tl.constexpr,
    BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    pid_n, pid_m, num_pid_m = tl.program_id(0) % PARTS, tl.program_id(0) // PARTS, tl.num_programs(0) // PARTS
    cols = pid_n * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    for row in range(pid_m, n_rows, num_pid_m):
        row_start = tl.cast(row, tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
        rstd = tl.load(rstd_ptr + row)
        c1 = 0.0  # the rest's part of the sum
        for i in tl.static_range(1, PARTS):
            rest_cols = (pid_n + i) % PARTS * BLOCK + tl.arange(0, BLOCK)
            rest_mask = rest_cols < n_cols
            x_rest = tl.load(x_ptr + row_start + rest_cols, mask=rest_mask, other=0.0).to(tl.float32)
            g_rest = tl.load(dy_ptr + row_start + rest_cols, mask=rest_mask, other=0.0).to(tl.float32)
            g_rest *= tl.load(w_ptr + rest_cols, mask=rest_mask, other=0.0).to(tl.float32)
            c1 += tl.sum(g_rest * (x_rest * rstd), 0)
        x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        x_hat = x * rstd
        g = dy * weight
        dx = (g - x_hat * ((c1 + tl.sum(g * x_hat, 0)) / n_cols)) * rstd
        tl.store(dx_ptr + row_start + cols, dx, mask=mask)
        dweight += dy * x_hat
    tl.store(sums_ptr + pid_m.to(tl.int64) * n_cols + cols, dweight, mask=mask)


def run(x, w_weight, rstd, dy):
    x, w_weight, rstd, dy = (each.contiguous() for each in (x, w_weight, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    block = min(triton.next_power_of_2(max(columns, 1)), WIDEST)
    parts, warps = max(triton.cdiv(columns, block), 1), min(max(block // (32 * ELEMENTS), 1), 32)
    sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    programs = min(rows, max(sms * min(WIDEST // block, 16) // parts, 1))  # for each part
    sums = torch.empty(programs, columns, device=x.device)
    if x.numel():
        tensors = (x, w_weight, rstd, dy, dx, sums)
        rms_norm_backward_kernel[(programs * parts,)](
            *tensors, rows, columns, BLOCK=block, PARTS=parts, num_warps=warps
        )
    return dx, sums.sum(0).to(w_weight.dtype)
