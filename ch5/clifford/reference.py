"""The layer's operations in plain PyTorch, of any floating type: the formulas to test with, and what runs on a CPU.

Shapes: x, y, out are (D, B, N): blade, batch row, feature; D = 4 in two dimensions, 8 in three. w is (N, P), one weight
a feature and path; W is (P, N, N), one matrix a path.

Each product has two forms. In `sgp` and `fcgp` every product of two blades is an operation of its own (in loops over
constants, which torch.compile unrolls); a multivector is a list of blades there, and one tensor is made at the end.
`sgp_dense` and `fcgp_dense` are one sum over a table that is mostly zeros: shorter, and with 4 times (2D) and 8 times
(3D) as many multiplications.
"""

import math
from functools import cache

import torch

from .algebra import Algebra, algebra

EPSILON = 1e-6  # added to the mean square of a grade, whose root the normalization divides by


def algebra_of(x: torch.Tensor) -> Algebra:
    """The algebra that has as many blades as x has. Raises ValueError if none has."""
    dimensions = {4: 2, 8: 3}.get(x.shape[0])
    if dimensions is None:
        raise ValueError(f"x must have 4 or 8 blades, not {x.shape[0]}")
    return algebra(dimensions)


def phi(t):
    """The normal distribution up to t."""
    return (1 + torch.erf(t * math.sqrt(0.5))) / 2


def density(t):
    """The normal density at t: the derivative of `phi`."""
    return torch.exp(-t * t / 2) * math.sqrt(0.5 / math.pi)


def gate(x):
    """Every blade of x (D, B, N) times phi of the scalar blade; the scalar blade becomes its GELU."""
    return x * phi(x[0])


def normalize(out):
    """Each grade of out (D, B, N) divided by the root of its squares, summed over blades, averaged over features."""
    parts = out.split(algebra_of(out).sizes)
    squares = [part.square().sum(0).mean(-1, keepdim=True) for part in parts]
    return torch.cat([part * torch.rsqrt(mean + EPSILON) for part, mean in zip(parts, squares, strict=True)])


# The same of lists of blades


def _gated(blades):
    factor = phi(blades[0])
    return [blade * factor for blade in blades]


def _by_grade(blades, found):
    return [blades[start : start + size] for start, size in zip(found.starts, found.sizes, strict=True)]


def _sum_of_products(left, right):
    first, *others = (a * b for a, b in zip(left, right, strict=True))
    return sum(others, first)


def _scale(part):
    """One over the root of a grade's squares, summed over its blades and averaged over features, (B, 1)."""
    return torch.rsqrt(_sum_of_products(part, part).mean(-1, keepdim=True) + EPSILON)


def _normalized(blades, found):
    divided = []
    for part in _by_grade(blades, found):
        scale = _scale(part)
        divided += [blade * scale for blade in part]
    return divided


def _before_normalization(gradient, blades, found):
    """The gradient of what `_normalized` was given, `blades`, from that of its answer."""
    before = []
    for g, part in zip(_by_grade(gradient, found), _by_grade(blades, found), strict=True):
        scale = _scale(part)
        turned = _sum_of_products(g, part).mean(-1, keepdim=True) * scale**3
        before += [scale * a - turned * b for a, b in zip(g, part, strict=True)]
    return before


def _before_gate(gradient, blades):
    """The gradient of what `_gated` was given, `blades`, from that of its answer."""
    factor = phi(blades[0])
    scalar = gradient[0] * factor + density(blades[0]) * _sum_of_products(blades, gradient)
    return [scalar, *(g * factor for g in gradient[1:])]


# The weighted geometric product


def sgp(x, y, w, normalized=True):
    """The product of the gated x and y (D, B, N) whose paths are weighted, feature by feature, by w (N, P)."""
    found = algebra_of(x)
    product = _weighted(_gated(x.unbind()), _gated(y.unbind()), w.unbind(-1), found.sums(2, 0, 1))
    return torch.stack(_normalized(product, found) if normalized else product)


def _weighted(left, right, w, table):
    """The sum over all paths p of w[p] times the sum of its products of a blade of `left` and one of `right`."""
    out = [0] * len(left)
    for p, path in enumerate(table):
        for blade, products in path:
            out[blade] = out[blade] + w[p] * _signed(left, right, products)
    return out


def _signed(left, right, products):
    total = 0
    for i, j, sign in products:
        total = total + left[i] * right[j] if sign > 0 else total - left[i] * right[j]
    return total


def sgp_dense(x, y, w, normalized=True):
    """`sgp` by a table that says for all (i, j, k, p) what e_i e_j has of e_k by the path p: 0, +1 or -1."""
    table = cayley(algebra_of(x).dimensions).to(w)
    product = torch.einsum("np,ijkp,ibn,jbn->kbn", w, table, gate(x), gate(y))
    return normalize(product) if normalized else product


@cache
def cayley(dimensions: int) -> torch.Tensor:
    """The table of all products of blades: (D, D, D, P), float32, on the CPU."""
    found = algebra(dimensions)
    table = torch.zeros(*[len(found.blades)] * 3, len(found.paths))
    for i, j, k, sign, path in found.terms:
        table[i, j, k, path] = sign
    return table


def sgp_backward(gradient, x, y, w, normalized=True):
    """The gradients of x, y, w, given that of `sgp`'s answer: what autograd finds, written out."""
    found = algebra_of(x)
    gradient, x, y, w = gradient.unbind(), x.unbind(), y.unbind(), w.unbind(-1)
    left, right = _gated(x), _gated(y)
    if normalized:
        gradient = _before_normalization(gradient, _weighted(left, right, w, found.sums(2, 0, 1)), found)
    dleft = _weighted(right, gradient, w, found.sums(0, 1, 2))
    dright = _weighted(left, gradient, w, found.sums(1, 0, 2))
    dw = [
        sum(gradient[blade] * _signed(left, right, products) for blade, products in path).sum(0)
        for path in found.sums(2, 0, 1)
    ]
    return torch.stack(_before_gate(dleft, x)), torch.stack(_before_gate(dright, y)), torch.stack(dw, -1)


# The fully connected geometric product


def fcgp(x, y, W, normalized=True):
    """The product of the gated x and y (D, B, N): a path p has the matrix W[p], W is (P, N, N)."""
    found = algebra_of(x)
    product = _connected(_gated(x.unbind()), _gated(y.unbind()), W.unbind(), found.sums(2, 0, 1))
    return torch.stack(_normalized(product, found) if normalized else product)


def _connected(left, right, W, table):
    out = [0] * len(left)
    for p, path in enumerate(table):
        for blade, products in path:
            out[blade] = out[blade] + _signed(left, right, products) @ W[p]
    return out


def fcgp_dense(x, y, W, normalized=True):
    """`fcgp` by the table of all products of blades, see `sgp_dense`."""
    table = cayley(algebra_of(x).dimensions).to(W)
    product = torch.einsum("ijkp,ibn,jbn,pnm->kbm", table, gate(x), gate(y), W)
    return normalize(product) if normalized else product


def fcgp_backward(gradient, x, y, W, normalized=True):
    """The gradients of x, y, W, given that of `fcgp`'s answer: what autograd finds, written out."""
    found = algebra_of(x)
    gradient, x, y, W = gradient.unbind(), x.unbind(), y.unbind(), W.unbind()
    left, right = _gated(x), _gated(y)
    if normalized:
        gradient = _before_normalization(gradient, _connected(left, right, W, found.sums(2, 0, 1)), found)
    dleft, dright, dW = [0] * len(x), [0] * len(x), []
    for p, path in enumerate(found.sums(2, 0, 1)):
        dW.append(sum(_signed(left, right, products).mT @ gradient[blade] for blade, products in path))
        for blade, products in path:
            dproduct = gradient[blade] @ W[p].mT
            for i, j, sign in products:
                dleft[i] = dleft[i] + sign * right[j] * dproduct
                dright[j] = dright[j] + sign * left[i] * dproduct
    return torch.stack(_before_gate(dleft, x)), torch.stack(_before_gate(dright, y)), torch.stack(dW)


# The layer


def linear(x, L, bias):
    """x (D, B, N) times L (n + 1, N, N), one matrix a grade; plus `bias` (N) on the scalar blade only."""
    sizes = algebra_of(x).sizes
    y = torch.bmm(x, torch.cat([matrix.expand(size, -1, -1) for matrix, size in zip(L, sizes, strict=True)]))
    return torch.cat([y[:1] + bias, y[1:]])


def layer(x, L, bias, w, normalized=True):
    """The product of x and `linear(x, L, bias)`: `sgp` where w is (N, P), `fcgp` where it is (P, N, N)."""
    product = sgp if w.dim() == 2 else fcgp
    return product(x, linear(x, L, bias), w, normalized)
