"""Random multivectors to multiply, and the gradients of their product by autograd or by a compiler."""

import torch
from clifford import algebra
from clifford import reference as formulas


def drawn(dimensions, batch, features, dtype, device):
    """x, y (blades, batch, features); w (features, paths), as spread as a new layer's."""
    blades, paths = 2**dimensions, len(algebra(dimensions).paths)
    x, y = (torch.randn(blades, batch, features, device=device).to(getattr(torch, dtype)) for _ in range(2))
    w = torch.randn(features, paths, device=device) * (dimensions + 1) ** -0.5
    return x, y, w.to(x.dtype)


def gradients(product, x, y, w, gradient, normalized):
    """dx, dy and dw of `product(x, y, w, normalized)`, whose gradient is given."""
    leaves = [each.detach().requires_grad_() for each in (x, y, w)]
    with torch.enable_grad():
        return torch.autograd.grad(product(*leaves, normalized), leaves, gradient)


def both_ways(compile_, x, y, w, gradient, normalized):
    """The same of what `compile_` makes of the formulas: of the gradients', too, which are not left to autograd."""
    _out = compile_(formulas.sgp, x, normalized)(x, y, w, normalized)
    return compile_(formulas.sgp_backward, x, normalized)(gradient, x, y, w, normalized)
