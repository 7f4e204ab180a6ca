"""The weighted product as this layer's published kernels are compared with it: another form of the same formula.

https://github.com/maxxxzdn/flash-clifford measures its kernels against torch.compile of its own tests/baselines.py. Its
form: blades are picked by lists of indices, the product becomes one tensor before it is normalized, a grade's length is
a `norm` that is squared again, and the gradients are left to autograd. `clifford.reference` keeps blades apart.
"""

import torch
from clifford.reference import EPSILON, algebra_of, phi


def sgp(x, y, w, normalized):
    """As `clifford.reference.sgp`: x, y (D, B, N), w (N, P)."""
    found = algebra_of(x)
    x, y = (t * phi(t[[0]]) for t in (x, y))
    blades = [0] * len(x)
    for i, j, k, sign, path in found.terms:
        blades[k] = blades[k] + sign * w[:, path] * x[i] * y[j]
    out = torch.stack(blades)
    if not normalized:
        return out
    grades = zip(found.starts, found.sizes, strict=True)
    return torch.cat([_divided(out[list(range(start, start + size))]) for start, size in grades])


def _divided(part):
    """The blades of a grade (size, B, N), over the root of the mean square of their length."""
    length = part if len(part) == 1 else part.norm(dim=0, keepdim=True)
    return part / (length.square().mean(-1, keepdim=True) + EPSILON).sqrt()
