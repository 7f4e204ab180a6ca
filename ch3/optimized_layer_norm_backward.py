"""Layer norm backward without atomics: programs that walk many rows keep dweight and dbias in registers.

Problem: `baseline_layer_norm_backward.py` makes an atomic addition for every element, and waits for them.

Idea: start only as many programs as the SMs hold at once. Each takes every so-many-th row, adds to its own dweight and
dbias in float32, and writes them once at the end. A second kernel adds up what the programs have written:

    132 SMs, 8192 columns    132 programs of 31 rows, 132 * 8192 * 2 sums of 4 bytes = 8.25 MiB written and read,
                             beside 384 MiB of x, dy and dx

Cost: five values a column in registers: x, dy, weight, dweight, dbias. With one program on an SM no other one works
while it waits for a row. So the loads of the next two rows are in flight, into shared memory, while this one is worked
on (num_stages=3, where these rows of x and of dy fit there).

    8192 columns      5 * 4 bytes * 8192 = 160 KiB, of the 256 KiB of registers that an SM has
    16,384 columns    320 KiB: they spill

Predict: take as the gain over the baseline the ratio less 1. Is more or less than half of the gain at 8192 columns left
at 16,384?
"""

import torch
import triton
import triton.language as tl
from partial_sums import add_kernel, add_pairs

ELEMENTS = 16  # of a row that a thread holds, of x, dy, weight, dweight and dbias
PER_SM = 8192  # elements of rows in flight in an SM: 5 * 4 bytes for each are 160 of its 256 KiB of registers
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


def run(x, w_weight, mean, rstd, dy):
    x, w_weight, mean, rstd, dy = (each.contiguous() for each in (x, w_weight, mean, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    total = torch.empty(2, columns, dtype=w_weight.dtype, device=x.device)  # dweight, dbias
    if not x.numel():
        return dx, *total.zero_()
    block = triton.next_power_of_2(columns)
    warps = min(max(block // (32 * ELEMENTS), 1), 32)
    gpu = None if x.is_cpu else torch.cuda.get_device_properties(x.device)
    sms, shared = (gpu.multi_processor_count, gpu.shared_memory_per_multiprocessor) if gpu else (2, 0)
    programs_per_sm = max(min(PER_SM // block, 16), 1)
    programs = min(rows, sms * programs_per_sm)
    fits = 4 * block * x.element_size() * programs_per_sm < shared
    stages = 3 if fits and rows > programs else 1  # two rows ahead, if there are and fit
    sums = torch.empty(2, programs, columns, device=x.device) if programs > 1 else total
    tensors = (x, w_weight, mean, rstd, dy, dx, sums)
    layer_norm_backward_kernel[(programs,)](
        *tensors, rows, columns, BLOCK=block, STAGES=stages, num_warps=warps, maxnreg=min(REGISTERS, 2048 // warps)
    )
    if programs > 1:
        add_kernel[(triton.cdiv(columns, 16), 2)](sums, total, programs, columns, ROWS=256, COLUMNS=16, num_warps=8)
    return dx, *total
