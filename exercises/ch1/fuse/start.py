"""A gated hard swish with a residual, in six operations of torch: 15 arrays are read and written where 4 would do.

Yours: `run`, and a kernel for it. Given: `inputs`.
"""

import torch


def inputs(n, device="cuda"):
    return {name: torch.randn(n, device=device) for name in ("x", "gate", "residual")}


def run(x, gate, residual):
    step = torch.add(x, 3.0)
    step = torch.clamp(step, 0.0, 6.0)
    step = torch.mul(step, x)
    step = torch.div(step, 6.0)
    step = torch.mul(step, gate)
    return torch.add(step, residual)
