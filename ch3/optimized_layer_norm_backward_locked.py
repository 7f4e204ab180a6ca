"""Layer norm backward as in Triton's tutorial: a few rows of partial sums, and a lock for each, instead of atomics.

Problem: `baseline_layer_norm_backward.py` makes an atomic addition for every element, 4096 to each address.

Idea: 64 rows of partial sums for dweight, and 64 for dbias. Row r of x belongs to number r % 64. A program takes its
lock, adds its whole row by plain loads and stores, and lets the lock go. `torch.sum` adds the 64 rows:

    lock     one atomic a row, and waiting for those that share the number
    sums     a plain load and store for each element, from L2: 64 * 8192 * 2 sums of 4 bytes are 4 MiB

Cost: beside x, dy and dx two partial sums an element are read from L2 and written to it, 8 bytes each, as the atomic
additions were, but 16 bytes a lane at a time. A program waits while another one holds its lock.

Predict: the partial sums move twice 8 bytes an element in L2, beside 12 bytes in memory. Is it the locks or these bytes
that keep it from the limit, if either?
"""

import torch
import triton
import triton.language as tl

ELEMENTS = 16  # of a row that a thread holds, of x and of dy
GROUPS = 64  # rows of partial sums (in the tutorial 64 to 256, the fewer the wider a row is)


def inputs(rows=4096, columns=8192, dtype="float32", device="cuda"):
    x = (3 + torch.randn(rows, columns, device=device)).to(getattr(torch, dtype))
    w_weight, dy = torch.randn(columns, device=device), torch.randn(rows, columns, device=device)
    mean = x.float().mean(1, keepdim=True)  # float32, as the forward saves them
    rstd = torch.rsqrt(x.float().var(1, correction=0, keepdim=True) + 1e-5)
    return {"x": x, "w_weight": w_weight.to(x.dtype), "mean": mean, "rstd": rstd, "dy": dy.to(x.dtype)}


@triton.jit
def layer_norm_backward_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, sums_ptr, locks_ptr,
    n_cols: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    row = tl.program_id(0)
    row_start = row.to(tl.int64) * n_cols  # 64 bits: a tensor may have more than 2^31 elements
    x = tl.load(x_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row_start + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    x_hat = (x - tl.load(mean_ptr + row)) * rstd  # beyond the row dy is 0, and all products with it
    g = dy * weight
    dx = (g - x_hat * (tl.sum(g * x_hat, 0) / n_cols) - tl.sum(g, 0) / n_cols) * rstd
    tl.store(dx_ptr + row_start + cols, dx, mask=mask)
    group = row % GROUPS
    dweight_ptrs = sums_ptr + group * n_cols + cols
    dbias_ptrs = dweight_ptrs + GROUPS * n_cols
    while tl.atomic_cas(locks_ptr + group, 0, 1) == 1:  # 1: another program holds it
        pass
    tl.store(dweight_ptrs, tl.load(dweight_ptrs, mask=mask) + dy * x_hat, mask=mask)
    tl.store(dbias_ptrs, tl.load(dbias_ptrs, mask=mask) + dy, mask=mask)
    tl.debug_barrier()  # all lanes have stored before the next program may load
    tl.atomic_xchg(locks_ptr + group, 0)


def run(x, w_weight, mean, rstd, dy):
    x, w_weight, mean, rstd, dy = (each.contiguous() for each in (x, w_weight, mean, rstd, dy))
    dx = torch.empty_like(x)
    rows, columns = x.shape
    sums = torch.zeros(2, GROUPS, columns, device=x.device)  # of dweight, of dbias
    locks = torch.zeros(GROUPS, dtype=torch.int32, device=x.device)
    if x.numel():
        block = triton.next_power_of_2(columns)
        warps = min(max(block // (32 * ELEMENTS), 1), 32)
        tensors = (x, w_weight, mean, rstd, dy, dx, sums, locks)
        layer_norm_backward_kernel[(rows,)](*tensors, columns, GROUPS=GROUPS, BLOCK=block, num_warps=warps)
    return dx, *sums.sum(1).to(w_weight.dtype)
