"""The gradients of gate(x) times y in two dimensions: one pass, 5 u, of which only x, y and the gradient are kept.

h = x * phi, the gated x, is not kept by the forward pass: an erf and four products make it again, and move no bytes.
The product is linear in h, so the gradient dh_i is the sum of s * g_k * y_j over all products h_i y_j that are s times
blade k. Then the gate: each blade is multiplied by phi, so dx_i has phi * dh_i. And phi depends on x_0, from all four
blades, so dx_0 has density(x_0) * sum_i x_i dh_i, too. No term needs another feature, so one program needs no other.
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
    return {name: torch.randn(4, batch, features, device=device) for name in ("x", "y", "gradient")}


def reference(x, y, gradient):
    (y0, y1, y2, y3), (g0, g1, g2, g3) = y, gradient
    phi, density = torch.special.ndtr(x[0]), torch.exp(-0.5 * x[0] * x[0]) * 0.3989422804014327
    h0, h1, h2, h3 = x * phi
    dy0 = g0 * h0 + g1 * h1 + g2 * h2 + g3 * h3
    dy1 = g0 * h1 + g1 * h0 - g2 * h3 - g3 * h2
    dy2 = g0 * h2 + g1 * h3 + g2 * h0 + g3 * h1
    dy3 = -g0 * h3 - g1 * h2 + g2 * h1 + g3 * h0
    dh0 = g0 * y0 + g1 * y1 + g2 * y2 + g3 * y3
    dh1 = g0 * y1 + g1 * y0 + g2 * y3 + g3 * y2
    dh2 = g0 * y2 - g1 * y3 + g2 * y0 - g3 * y1
    dh3 = -g0 * y3 + g1 * y2 - g2 * y1 + g3 * y0
    dh = torch.stack((dh0, dh1, dh2, dh3))
    dx = phi * dh
    dx[0] += density * (x * dh).sum(0)
    return dx, torch.stack((dy0, dy1, dy2, dy3))


def cost(x, y, gradient):
    return {"dram_bytes": 5 * x.nbytes}


@triton.jit
def backward_kernel(x_ptr, y_ptr, g_ptr, dx_ptr, dy_ptr, n, BLOCK: tl.constexpr):
    """n: the elements of a blade. A blade of all rows and features is contiguous; the next begins n elements later."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    x0 = tl.load(x_ptr + place, mask=mask)
    x1 = tl.load(x_ptr + n + place, mask=mask)
    x2 = tl.load(x_ptr + 2 * n + place, mask=mask)
    x3 = tl.load(x_ptr + 3 * n + place, mask=mask)
    g0 = tl.load(g_ptr + place, mask=mask)
    g1 = tl.load(g_ptr + n + place, mask=mask)
    g2 = tl.load(g_ptr + 2 * n + place, mask=mask)
    g3 = tl.load(g_ptr + 3 * n + place, mask=mask)
    phi = 0.5 + 0.5 * tl.erf(x0 * 0.7071067811865476)
    h0, h1, h2, h3 = x0 * phi, x1 * phi, x2 * phi, x3 * phi
    tl.store(dy_ptr + place, g0 * h0 + g1 * h1 + g2 * h2 + g3 * h3, mask=mask)
    tl.store(dy_ptr + n + place, g0 * h1 + g1 * h0 - g2 * h3 - g3 * h2, mask=mask)
    tl.store(dy_ptr + 2 * n + place, g0 * h2 + g1 * h3 + g2 * h0 + g3 * h1, mask=mask)
    tl.store(dy_ptr + 3 * n + place, g2 * h1 + g3 * h0 - g0 * h3 - g1 * h2, mask=mask)
    y0 = tl.load(y_ptr + place, mask=mask)
    y1 = tl.load(y_ptr + n + place, mask=mask)
    y2 = tl.load(y_ptr + 2 * n + place, mask=mask)
    y3 = tl.load(y_ptr + 3 * n + place, mask=mask)
    dh0 = g0 * y0 + g1 * y1 + g2 * y2 + g3 * y3
    dh1 = g0 * y1 + g1 * y0 + g2 * y3 + g3 * y2
    dh2 = g0 * y2 - g1 * y3 + g2 * y0 - g3 * y1
    dh3 = g1 * y2 - g0 * y3 - g2 * y1 + g3 * y0
    density = tl.exp(-0.5 * x0 * x0) * 0.3989422804014327
    inner = x0 * dh0 + x1 * dh1 + x2 * dh2 + x3 * dh3
    tl.store(dx_ptr + place, phi * dh0 + density * inner, mask=mask)
    tl.store(dx_ptr + n + place, phi * dh1, mask=mask)
    tl.store(dx_ptr + 2 * n + place, phi * dh2, mask=mask)
    tl.store(dx_ptr + 3 * n + place, phi * dh3, mask=mask)


def run(x, y, gradient):
    dx, dy, n = torch.empty_like(x), torch.empty_like(y), x[0].numel()
    backward_kernel[(triton.cdiv(n, 512),)](x, y, gradient, dx, dy, n, BLOCK=512)
    return dx, dy
