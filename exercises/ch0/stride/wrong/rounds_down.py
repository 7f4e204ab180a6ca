"""Every step-th element of a vector. The start copies the first elements instead, and for one program only.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, step, device="cuda"):
    return {"x": torch.randn(n, device=device), "step": step}


@triton.jit
def every_kernel(x_ptr, out_ptr, n_out, step, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_out
    x = tl.load(x_ptr + offsets * step, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def run(x, step):
    n_out = x.numel() // step
    out = torch.empty(n_out, device=x.device)
    every_kernel[(triton.cdiv(n_out, 1024),)](x, out, n_out, step, BLOCK=1024)
    return out
