"""A gated hard swish with a residual, in six operations of torch: 15 arrays are read and written where 4 would do.

Yours: `run`, and a kernel for it. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(n, device="cuda"):
    return {name: torch.randn(n, device=device) for name in ("x", "gate", "residual")}


@triton.jit
def hard_swish(x):
    return x * tl.clamp(x + 3.0, 0.0, 6.0) * (1.0 / 6.0)


@triton.jit
def gated_kernel(x_ptr, gate_ptr, residual_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    gate = tl.load(gate_ptr + offsets, mask=mask)
    residual = tl.load(residual_ptr + offsets, mask=mask)
    swish = hard_swish(x)
    tl.store(out_ptr + offsets, residual + swish * gate, mask=mask)


def run(x, gate, residual):
    n = x.numel()
    out = torch.empty_like(x)
    gated_kernel[(triton.cdiv(n, 1024),)](x, gate, residual, out, n, BLOCK=1024)
    return out
