"""RMS norm backward without atomics or locks: programs that walk many rows keep dweight in registers.

Problem: in `optimized_rms_norm_backward_locked.py` every row adds to partial sums in L2, one program at a time.

Idea: start only as many programs as the SMs hold at once. Each takes every so-many-th row, adds to its own dweight
in float32, and writes it once at the end. `torch.sum` adds up what the programs have written:

    132 SMs, 8192 columns    132 programs of 31 rows, 132 * 8192 sums of 4 bytes = 4.1 MiB written and read,
                             beside 384 MiB of x, dy and dx

Cost: four values a column in registers: x, dy, weight, dweight. With one program on an SM no other one works
while it waits for a row.

    8192 columns      4 * 4 bytes * 8192 = 128 KiB, of the 256 KiB of registers that an SM has
    16,384 columns    256 KiB: nothing is left for all else, and they spill

Predict: what share of the limit, the time of moving x, dy and dx, does it reach at 8192 columns, and at
16,384?
"""

import torch
import triton
import triton.language as tl

VERSUS = "locked"
ELEMENTS = 16  # of a row that a thread holds, of x, dy, weight and the sums
PER_SM = 8192  # elements of rows in flight in an SM: 4 * 4 bytes for each are 128 of its 256 KiB of registers


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x, dy = (torch.randn(rows, columns, device=device).to(getattr(torch, dtype)) for _ in range(2))
    w_weight = torch.randn(columns, device=device).to(x.dtype)
    rstd = torch.rsqrt(x.float().square().mean(1, keepdim=True) + 1e-5)  # float32, as the forward saves it
    return {"x": x, "w_weight": w_weight, "rstd": rstd, "dy": dy}


@triton.jit
def rms_norm_backward_kernel(
    x_ptr, w_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr, n_rows, n_cols: tl.constexpr, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        row_start = tl.cast(row, tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
        x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = x * rstd
        g = dy * weight
        dx = (g - x_hat * (tl.sum(g * x_hat, 0) / n_cols)) * rstd
        tl.store(dx_ptr + row_start + cols, dx, mask=mask)
        dweight += dy * x_hat
    tl.store(sums_ptr + tl.program_id(0).to(tl.int64) * n_cols + cols, dweight, mask=mask)


def run(x, w_weight, rstd, dy):
    x, w_weight, rstd, dy = (each.contiguous() for each in (x, w_weight, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    block = triton.next_power_of_2(max(columns, 1))
    warps = min(max(block // (32 * ELEMENTS), 1), 32)
    sms = 2 if x.is_cpu else torch.cuda.get_device_properties(x.device).multi_processor_count
    programs = min(rows, sms * max(min(PER_SM // block, 16), 1))
    sums = torch.empty(programs, columns, device=x.device)
    if x.numel():
        tensors = (x, w_weight, rstd, dy, dx, sums)
        rms_norm_backward_kernel[(programs,)](*tensors, rows, columns, BLOCK=block, num_warps=warps)
    return dx, sums.sum(0).to(w_weight.dtype)
