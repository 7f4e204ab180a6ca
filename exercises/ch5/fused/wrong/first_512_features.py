"""Gate, product and normalization of one layer in two dimensions, in one kernel that takes 512 features of a row."""

import torch
import triton
import triton.language as tl


def inputs(batch, features, device="cuda"):
    return {name: torch.randn(4, batch, features, device=device) for name in ("x", "y")}


@triton.jit
def phi(t):
    return 0.5 + 0.5 * tl.erf(t * 0.7071067811865476)


@triton.jit
def layer_kernel(x_ptr, y_ptr, out_ptr, features, n, BLOCK: tl.constexpr):
    """One row of all blades. n: the elements of a blade, `features` of them in a row."""
    feature = tl.arange(0, BLOCK)
    place, mask = tl.program_id(0) * features + feature, feature < features
    x0 = tl.load(x_ptr + place, mask=mask, other=0.0)
    x1 = tl.load(x_ptr + n + place, mask=mask, other=0.0)
    x2 = tl.load(x_ptr + 2 * n + place, mask=mask, other=0.0)
    x3 = tl.load(x_ptr + 3 * n + place, mask=mask, other=0.0)
    y0 = tl.load(y_ptr + place, mask=mask, other=0.0)
    y1 = tl.load(y_ptr + n + place, mask=mask, other=0.0)
    y2 = tl.load(y_ptr + 2 * n + place, mask=mask, other=0.0)
    y3 = tl.load(y_ptr + 3 * n + place, mask=mask, other=0.0)
    factor = phi(x0) * phi(y0)  # of all products: each has a blade of x and one of y
    out0 = (x0 * y0 + x1 * y1 + x2 * y2 - x3 * y3) * factor
    out1 = (x0 * y1 + x1 * y0 - x2 * y3 + x3 * y2) * factor
    out2 = (x0 * y2 + x1 * y3 + x2 * y0 - x3 * y1) * factor
    out3 = (x0 * y3 + x1 * y2 - x2 * y1 + x3 * y0) * factor
    scale0 = tl.rsqrt(tl.sum(out0 * out0) / features + 1e-6)
    scale1 = tl.rsqrt(tl.sum(out1 * out1 + out2 * out2) / features + 1e-6)
    scale2 = tl.rsqrt(tl.sum(out3 * out3) / features + 1e-6)
    tl.store(out_ptr + place, out0 * scale0, mask=mask)
    tl.store(out_ptr + n + place, out1 * scale1, mask=mask)
    tl.store(out_ptr + 2 * n + place, out2 * scale1, mask=mask)
    tl.store(out_ptr + 3 * n + place, out3 * scale2, mask=mask)


def run(x, y):
    out, (_, batch, features) = torch.empty_like(x), x.shape
    layer_kernel[(batch,)](x, y, out, features, batch * features, BLOCK=512)
    return out
