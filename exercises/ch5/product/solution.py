"""The geometric product in two dimensions: eight numbers of a feature are loaded once, for 16 products.

Only products that are not zero are written out: D * D = 16 of the 64 entries of the table of signs. Four have a minus:
e12 e12 = -1, e2 e12 = -e1, e12 e1 = -e2 and e2 e1 = -e12, one in each blade of the answer. Each blade is a plane in
memory, n elements after the one before, so that neighbouring lanes always touch neighbouring features. 3 u move.
"""

import torch
import triton
import triton.language as tl

SIZES = {
    "check": {"batch": 3, "features": 127}, "check/one": {"batch": 1, "features": 1},
    "check/several": {"batch": 5, "features": 205}, "check/wide": {"batch": 2, "features": 1100},
    "count": {"batch": 4, "features": 512}, "default": {"batch": 4096, "features": 512},
}  # fmt: skip


def inputs(batch, features, device="cuda"):
    return {name: torch.randn(4, batch, features, device=device) for name in ("x", "y")}


def reference(x, y):
    (x0, x1, x2, x3), (y0, y1, y2, y3) = x, y
    out0 = x0 * y0 + x1 * y1 + x2 * y2 - x3 * y3
    out1 = x0 * y1 + x1 * y0 - x2 * y3 + x3 * y2
    out2 = x0 * y2 + x1 * y3 + x2 * y0 - x3 * y1
    out3 = x0 * y3 + x1 * y2 - x2 * y1 + x3 * y0
    return torch.stack((out0, out1, out2, out3))


def cost(x, y):
    return {"dram_bytes": 3 * x.nbytes}


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """n: the elements of a blade. A blade of all rows and features is contiguous; the next begins n elements later."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
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
    out, n = torch.empty_like(x), x[0].numel()
    product_kernel[(triton.cdiv(n, 512),)](x, y, out, n, BLOCK=512)
    return out
