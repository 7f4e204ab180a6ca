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
    x0 = tl.load(x_ptr + 8 * place, mask=mask)
    phi = 0.5 + 0.5 * tl.erf(x0 * 0.7071067811865476)
    for i in tl.static_range(8):
        x = tl.load(x_ptr + 8 * place + i, mask=mask)
        tl.store(out_ptr + i * n + place, x * phi, mask=mask)


def run(x):
    batch, features, _ = x.shape
    out, n = torch.empty(8, batch, features, device=x.device), batch * features
    gate_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
