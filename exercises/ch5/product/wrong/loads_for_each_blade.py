"""The geometric product in two dimensions: 16 products of blades in one pass. Here is the first of them.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(batch, features, device="cuda"):
    return {name: torch.randn(4, batch, features, device=device) for name in ("x", "y")}


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One program makes one blade of its features: the second axis of the grid says which."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k, mask = tl.program_id(1), place < n
    x0 = tl.load(x_ptr + place, mask=mask)
    x1 = tl.load(x_ptr + n + place, mask=mask)
    x2 = tl.load(x_ptr + 2 * n + place, mask=mask)
    x3 = tl.load(x_ptr + 3 * n + place, mask=mask)
    y0 = tl.load(y_ptr + place, mask=mask)
    y1 = tl.load(y_ptr + n + place, mask=mask)
    y2 = tl.load(y_ptr + 2 * n + place, mask=mask)
    y3 = tl.load(y_ptr + 3 * n + place, mask=mask)
    if k == 0:
        total = x0 * y0 + x1 * y1 + x2 * y2 - x3 * y3
    elif k == 1:
        total = x0 * y1 + x1 * y0 - x2 * y3 + x3 * y2
    elif k == 2:
        total = x0 * y2 + x1 * y3 + x2 * y0 - x3 * y1
    else:
        total = x0 * y3 + x1 * y2 - x2 * y1 + x3 * y0
    tl.store(out_ptr + k * n + place, total, mask=mask)


def run(x, y):
    out, n = torch.empty_like(x), x[0].numel()
    product_kernel[(triton.cdiv(n, 512), 4)](x, y, out, n, BLOCK=512)
    return out
