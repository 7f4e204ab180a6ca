"""The geometric product in two dimensions: 16 products of blades in one pass. Here is the first of them.

Yours: the kernel and `run`. Given: `inputs`.
"""

import torch
import triton
import triton.language as tl


def inputs(batch, features, device="cuda"):
    return {name: torch.randn(4, batch, features, device=device) for name in ("x", "y")}


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, features, n, BLOCK: tl.constexpr):
    """A program takes some features of one row: the first axis of the grid is the row."""
    feature = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place, mask = tl.program_id(0) * features + feature, feature < features
    x0 = tl.load(x_ptr + place, mask=mask)
    x1 = tl.load(x_ptr + n + place, mask=mask)
    x2 = tl.load(x_ptr + 2 * n + place, mask=mask)
    x3 = tl.load(x_ptr + 3 * n + place, mask=mask)
    y0 = tl.load(y_ptr + place, mask=mask)
    y1 = tl.load(y_ptr + n + place, mask=mask)
    y2 = tl.load(y_ptr + 2 * n + place, mask=mask)
    y3 = tl.load(y_ptr + 3 * n + place, mask=mask)
    tl.store(out_ptr + place, x0 * y0 + x1 * y1 + x2 * y2 - x3 * y3, mask=mask)
    tl.store(out_ptr + n + place, x0 * y1 + x1 * y0 - x2 * y3 + x3 * y2, mask=mask)
    tl.store(out_ptr + 2 * n + place, x0 * y2 + x1 * y3 + x2 * y0 - x3 * y1, mask=mask)
    tl.store(out_ptr + 3 * n + place, x0 * y3 + x1 * y2 - x2 * y1 + x3 * y0, mask=mask)


def run(x, y):
    out, (_, batch, features) = torch.empty_like(x), x.shape
    grid = (batch, triton.cdiv(features, 512))
    product_kernel[grid](x, y, out, features, batch * features, BLOCK=512)
    return out
