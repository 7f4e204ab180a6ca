"""Gate multivectors whose blades are adjacent in memory, and write them blade by blade. Each load uses 4 bytes of 32.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(batch, features, device="cuda"):
    return {"x": torch.randn(batch, features, 8, device=device)}


@triton.jit
def gate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """n: the number of multivectors, which is the number of elements of one blade of the answer."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    blade = tl.arange(0, 8)
    x = tl.load(x_ptr + 8 * place[:, None] + blade[None, :], mask=mask[:, None], other=0.0)
    x0 = tl.load(x_ptr + 8 * place, mask=mask, other=0.0)
    phi = 0.5 + 0.5 * tl.erf(x0 * 0.7071067811865476)
    tl.store(out_ptr + blade[None, :] * n + place[:, None], x * phi[:, None], mask=mask[:, None])


def run(x):
    batch, features, _ = x.shape
    out, n = torch.empty(8, batch, features, device=x.device), batch * features
    gate_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
