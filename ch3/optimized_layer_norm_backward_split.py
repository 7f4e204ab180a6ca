"""Layer norm backward of rows too wide for one program: two share the columns, and each reads the other's columns once.

Problem: at 16,384 columns `optimized_layer_norm_backward_partial.py` has to hold 320 KiB, and an SM has 256 KiB of
registers.

Idea: two programs share a row. Each keeps dweight and dbias of its own columns, at most 8192, in registers:

    16,384 columns    5 values of 4 bytes for each are 320 KiB
    its 8192          160 KiB

The two means are of the whole row. So a program reads the rest of the row too, and keeps of it only what it adds to
the sums. The two programs of a row run at the same time, and what one reads from DRAM the other finds in L2.

Cost: every element of x and dy goes from L2 to two SMs: 5 elements instead of 3, and the rest's weights for each row.
Up to 8192 columns a row has one part, and nothing is shared.

Predict: at 16,384 columns, how many times faster is it than `optimized_layer_norm_backward_partial.py`, if that moved
its spilled values as often as its rows?
"""

import torch
import triton
import triton.language as tl

VERSUS = "partial"
ELEMENTS = 16  # of a row that a thread holds, of x, dy, weight and the sums
WIDEST = 8192  # of a row that a program keeps: 5 * 4 bytes for each are 160 of an SM's 256 KiB of registers


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = (3 + torch.randn(rows, columns, device=device)).to(getattr(torch, dtype))
    w_weight, dy = torch.randn(columns, device=device), torch.randn(rows, columns, device=device)
    mean = x.float().mean(1, keepdim=True)  # float32, as the forward saves them
    rstd = torch.rsqrt(x.float().var(1, correction=0, keepdim=True) + 1e-5)
    return {"x": x, "w_weight": w_weight.to(x.dtype), "mean": mean, "rstd": rstd, "dy": dy.to(x.dtype)}


@triton.jit
def layer_norm_backward_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr, n_rows, n_cols: tl.constexpr,
    BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    pid_n, pid_m, num_pid_m = tl.program_id(0) % PARTS, tl.program_id(0) // PARTS, tl.num_programs(0) // PARTS
    cols = pid_n * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight, dbias = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for row in range(pid_m, n_rows, num_pid_m):
        row_start = tl.cast(row, tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
        mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
        c1, c2 = 0.0, 0.0  # the rest's part of both sums
        for i in tl.static_range(1, PARTS):
            rest_cols = (pid_n + i) % PARTS * BLOCK + tl.arange(0, BLOCK)
            rest_mask = rest_cols < n_cols
            x_rest = tl.load(x_ptr + row_start + rest_cols, mask=rest_mask, other=0.0).to(tl.float32)
            g_rest = tl.load(dy_ptr + row_start + rest_cols, mask=rest_mask, other=0.0).to(tl.float32)
            g_rest *= tl.load(w_ptr + rest_cols, mask=rest_mask, other=0.0).to(tl.float32)
            c1 += tl.sum(g_rest * ((x_rest - mean) * rstd), 0)
            c2 += tl.sum(g_rest, 0)
        x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd  # beyond the row dy is 0, and all products with it
        g = dy * weight
        c1, c2 = c1 + tl.sum(g * x_hat, 0), c2 + tl.sum(g, 0)
        dx = (g - x_hat * (c1 / n_cols) - c2 / n_cols) * rstd
        tl.store(dx_ptr + row_start + cols, dx, mask=mask)
        dweight += dy * x_hat
        dbias += dy
    sums_ptr += pid_m.to(tl.int64) * n_cols
    tl.store(sums_ptr + cols, dweight, mask=mask)
    tl.store(sums_ptr + num_pid_m.to(tl.int64) * n_cols + cols, dbias, mask=mask)


def run(x, w_weight, mean, rstd, dy):
    x, w_weight, mean, rstd, dy = (each.contiguous() for each in (x, w_weight, mean, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    block = min(triton.next_power_of_2(max(columns, 1)), WIDEST)
    parts, warps = max(triton.cdiv(columns, block), 1), min(max(block // (32 * ELEMENTS), 1), 32)
    sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    programs = min(rows, max(sms * min(WIDEST // block, 16) // parts, 1))  # for each part
    sums = torch.empty(2, programs, columns, device=x.device)
    if x.numel():
        tensors = (x, w_weight, mean, rstd, dy, dx, sums)
        layer_norm_backward_kernel[(programs * parts,)](
            *tensors, rows, columns, BLOCK=block, PARTS=parts, num_warps=warps
        )
    return dx, *sums.sum(1).to(w_weight.dtype)
