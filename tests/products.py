"""What the tests of chapter 5's two products share: inputs, what operators and formulas answer, and what is near."""

from importlib.util import find_spec
from itertools import combinations

import pytest
import torch
from clifford import algebra, ops, reference

OPERATORS = {"sgp": ops.sgp, "fcgp": ops.fcgp}
FORMULAS = {
    "sgp": (reference.sgp, reference.sgp_dense, reference.sgp_backward),
    "fcgp": (reference.fcgp, reference.fcgp_dense, reference.fcgp_backward),
}
PRODUCTS = pytest.mark.parametrize("product", list(OPERATORS))
DIMENSIONS = pytest.mark.parametrize("dimensions", [2, 3])
NORMALIZED = pytest.mark.parametrize("normalized", [True, False], ids=["normalized", "plain"])
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
GPU = pytest.mark.gpu
DEVICES = pytest.mark.parametrize("device", [pytest.param("cpu", marks=needs_triton), pytest.param("cuda", marks=GPU)])


def drawn(product, dimensions, batch, features, dtype=torch.float32):
    """x, y, the weights of the product (SGP: as (P, N), transposed), and a gradient of the answer; on the CPU."""
    found = algebra(dimensions)
    x, y, dout = (torch.randn(len(found.blades), batch, features).to(dtype) for _ in range(3))
    if product == "sgp":
        return x, y, torch.randn(len(found.paths), features).to(dtype).mT, dout
    return x, y, (torch.randn(len(found.paths), features, features) / features**0.5).to(dtype), dout


def expanded(x):
    return x[..., :1].expand(x.shape)


def answer(device, product, tensors, normalized=True, precision=(), layout=torch.detach):
    """[out, dx, dy, dw] by the operator and its autograd, on the CPU. `layout`: puts tensors elsewhere in memory."""
    *leaves, dout = (layout(t.to(device)).detach() for t in tensors)
    leaves = [leaf.requires_grad_() for leaf in leaves]
    out = OPERATORS[product](*leaves, normalized, *precision)
    return [t.cpu() for t in (out.detach(), *torch.autograd.grad(out, leaves, dout))]


def by_formulas(product, x, y, w, dout, normalized=True):
    """The same by the formulas, in the tensors' own type."""
    forward, _, backward = FORMULAS[product]
    return [forward(x, y, w, normalized), *backward(dout, x, y, w, normalized)]


def assert_right(product, actual, tensors, normalized=True):
    """`actual`, out or [out, dx, dy, dw], is a few times as far from float64 as formulas in the tensors' type are.

    Where a result is exact but for its own rounding, that of its type counts. Of few features the normalization leaves
    of a weighted product's gradient little but rounding. NaN fails, too.
    """
    times, roundings = (4, 4) if product == "fcgp" else (5, 2.5) if tensors[0].shape[2] > 3 else (20, 10)
    together = sum if product == "fcgp" else max
    true = by_formulas(product, *(t.double() for t in tensors), normalized)
    for name, mine, own, right in zip(
        ("out", "dx", "dy", "dw"), actual, by_formulas(product, *tensors, normalized), true, strict=False
    ):
        assert mine.dtype == tensors[0].dtype and mine.shape == right.shape
        for order in (2, float("inf")):  # all of them, and the largest
            errors = mine.double() - right, own.double() - right
            off, usual, size = (torch.linalg.vector_norm(t, order).item() for t in (*errors, right))
            limit = together([times * usual, roundings * torch.finfo(mine.dtype).eps * size])
            assert off <= limit, f"{name} is off by {off:.1e}, more than {limit:.1e}"


def orthogonal(dimensions, reflection):
    """A random rotation, or a rotation and a reflection, of vectors: float64, its determinant 1 or -1."""
    q = torch.linalg.qr(torch.randn(dimensions, dimensions).double())[0]
    return q if (torch.det(q) < 0) == reflection else torch.cat([-q[:1], q[1:]])


def on_blades(q):
    """What q does to all blades: of each grade, the determinants of its minors."""
    dimensions = len(q)
    parts = [torch.ones(1, 1).double()]
    for grade in range(1, dimensions + 1):
        axes = list(combinations(range(dimensions), grade))
        parts.append(torch.stack([torch.stack([torch.det(q[list(to)][:, list(of)]) for of in axes]) for to in axes]))
    return torch.block_diag(*parts)


def turned(x, q):
    return torch.einsum("ij,jbn->ibn", on_blades(q).to(x.dtype), x)
