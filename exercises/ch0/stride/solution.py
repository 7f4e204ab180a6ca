"""Every step-th element of a vector: a lane belongs to an element of the answer, and loads step times its offset.

The answer has ceil(n / step) elements, because element 0 always belongs to it. The mask is the same for the load and
for the store: if offsets < n_out, then offsets * step <= (n_out - 1) * step < n.

A stride does not change how many bytes the program asks for, but which sectors: with step 2 the load touches every
sector of `x` and uses half of each. From step 8 on each lane has a sector of its own. The stores are side by side.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"n": 1000, "step": 3}, "check/one": {"n": 1, "step": 1}, "check/ragged": {"n": 4099, "step": 2},
    "check/long": {"n": 30_000, "step": 7}, "check/wide": {"n": 130, "step": 200},
    "check/apart": {"n": 20_000, "step": 50},
    "count": {"n": 16_384, "step": 2}, "default": {"n": 67_108_864, "step": 2},
}  # fmt: skip


def inputs(n, step, device="cuda"):
    return {"x": torch.randn(n, device=device), "step": step}


def reference(x, step):
    return x[::step].clone()


def cost(x, step):
    n_out = -(-x.numel() // step)
    return {"dram_bytes": min(x.nbytes, 32 * n_out) + 4 * n_out}  # sectors of x, and the answer


@triton.jit
def every_kernel(x_ptr, out_ptr, n_out, step, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_out
    x = tl.load(x_ptr + offsets * step, mask=mask)
    tl.store(out_ptr + offsets, x, mask=mask)


def run(x, step):
    n_out = triton.cdiv(x.numel(), step)
    out = torch.empty(n_out, device=x.device)
    every_kernel[(triton.cdiv(n_out, 1024),)](x, out, n_out, step, BLOCK=1024)
    return out
