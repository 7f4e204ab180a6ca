"""A gated hard swish with a residual in one kernel: 4 arrays cross the memory bus instead of 15.

The six steps read and write 2 + 2 + 3 + 2 + 3 + 3 = 15 arrays. Here every value between two steps stays in a register,
so what is left is the least: read x, gate and residual, write the answer. That is 15 / 4 = 3.75 times less. The FLOPs
are the same, and one launch takes the place of six.

All lanes are adjacent, and a program has 1024 elements: each thread loads 16 bytes at once.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 1000}, "check/one": {"n": 1}, "check/ragged": {"n": 1025}, "check/long": {"n": 9001},
    "count": {"n": 8192}, "default": {"n": 33_554_432},
}  # fmt: skip


def inputs(n, device="cuda"):
    return {name: torch.randn(n, device=device) for name in ("x", "gate", "residual")}


def reference(x, gate, residual):
    return residual + gate * (x * torch.clamp(x + 3, 0, 6) / 6)


def cost(x, gate, residual):
    return {"dram_bytes": 4 * x.nbytes}  # read three arrays, write one


@triton.jit
def gated_kernel(x_ptr, gate_ptr, residual_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    gate = tl.load(gate_ptr + offsets, mask=mask)
    residual = tl.load(residual_ptr + offsets, mask=mask)
    swish = x * tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0
    tl.store(out_ptr + offsets, residual + swish * gate, mask=mask)


def run(x, gate, residual):
    n = x.numel()
    out = torch.empty_like(x)
    gated_kernel[(triton.cdiv(n, 1024),)](x, gate, residual, out, n, BLOCK=1024)
    return out
