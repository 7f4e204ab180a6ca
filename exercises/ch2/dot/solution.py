"""The weighted sum of each row: both loads say what their masked lanes hold, because 0 * NaN is NaN.

A masked lane without `other` holds whatever its register held before. Mostly this is a finite number, and 0 times that
is 0: the kernel is right for months. If it is NaN or infinity, the product is NaN, and so is the sum of the row. So a
factor of 0 protects nothing: every value that goes into a reduction needs lanes that are neutral there. A load whose
lanes are only stored with the same mask needs no `other`.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n_rows": 60, "n_cols": 20}, "check/one": {"n_rows": 33, "n_cols": 1},
    "check/ragged": {"n_rows": 7, "n_cols": 1000}, "check/full": {"n_rows": 9, "n_cols": 64},
    "count": {"n_rows": 64, "n_cols": 128}, "default": {"n_rows": 65_536, "n_cols": 1000},
}  # fmt: skip


def inputs(n_rows, n_cols, device="cuda"):
    x = torch.randn(n_rows, n_cols, device=device)
    x = x.masked_fill(torch.rand_like(x) < 0.3, 0.0)  # as behind a relu
    return {"x": x, "weights": torch.randn(n_cols, device=device)}


def reference(x, weights):
    return (x * weights).sum(1)


def cost(x, weights):
    return {"dram_bytes": x.nbytes + weights.nbytes + 4 * x.shape[0]}  # read both, write a number for each row


@triton.jit
def dot_kernel(x_ptr, weights_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    weights = tl.load(weights_ptr + cols, mask=mask, other=0.0)
    tl.store(out_ptr + row, tl.sum(x * weights, 0))


def run(x, weights):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, device=x.device)
    dot_kernel[(n_rows,)](x, weights, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
