"""The masked lanes of the product become 0, whatever the two loads hold there."""

import torch
import triton
import triton.language as tl


def inputs(n_rows, n_cols, device="cuda"):
    x = torch.randn(n_rows, n_cols, device=device)
    x = x.masked_fill(torch.rand_like(x) < 0.3, 0.0)  # as behind a relu
    return {"x": x, "weights": torch.randn(n_cols, device=device)}


@triton.jit
def dot_kernel(x_ptr, weights_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask)
    weights = tl.load(weights_ptr + cols, mask=mask)
    tl.store(out_ptr + row, tl.sum(tl.where(mask, x * weights, 0.0), 0))


def run(x, weights):
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, device=x.device)
    dot_kernel[(n_rows,)](x, weights, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
