"""Chapter 5's algebra, its formulas, and its operators and modules as PyTorch sees them.

The formulas' gradients are compared with differences in float64. test_clifford_kernels.py has the kernels.
"""

from functools import partial
from itertools import cycle
from itertools import product as combined

import published
import pytest
import torch
from clifford import CliffordLayer, FCGP2d, FCGP3d, SGP2d, SGP3d, algebra, reference
from products import DIMENSIONS, FORMULAS, GPU, NORMALIZED, OPERATORS, PRODUCTS, drawn, orthogonal, turned

pytestmark = pytest.mark.rest  # formulas and operators at their edges
BLADES = {2: "1 e1 e2 e12", 3: "1 e1 e2 e3 e12 e13 e23 e123"}
PATHS = {
    2: "00>0 01>1 02>2 11>0 10>1 12>1 11>2 22>0 21>1 20>2",
    3: "00>0 01>1 02>2 03>3 11>0 10>1 12>1 11>2 13>2 12>3 22>0 21>1 23>1 20>2 22>2 21>3 33>0 32>1 31>2 30>3",
}
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])


# The algebra


@DIMENSIONS
def test_blades_and_paths_are_those_of_the_books(dimensions):
    found = algebra(dimensions)
    names = ["e" + "".join(map(str, blade)) if blade else "1" for blade in found.blades]
    assert " ".join(names) == BLADES[dimensions]
    assert " ".join(f"{left}{right}>{out}" for left, right, out in found.paths) == PATHS[dimensions]
    assert found.grades == tuple(len(blade) for blade in found.blades)
    assert [found.grades[start : start + size] for start, size in zip(found.starts, found.sizes, strict=True)] == [
        (grade,) * size for grade, size in enumerate(found.sizes)
    ]


def test_some_products():
    found = algebra(3)
    index = {name: i for i, name in enumerate(BLADES[3].split())}
    expected = "e1 e1 +1|e2 e1 -e12|e12 e12 -1|e1 e23 +e123|e123 e123 -1|e12 e23 +e13|e13 e2 -e123|e3 e123 +e12"
    for left, right, out in map(str.split, expected.split("|")):
        assert found.product(index[left], index[right]) == (int(f"{out[0]}1"), index[out[1:]]), (left, right)


@DIMENSIONS
def test_products_are_associative(dimensions):
    found = algebra(dimensions)
    for i, j, k in combined(range(len(found.blades)), repeat=3):
        (s, ij), (t, jk) = found.product(i, j), found.product(j, k)
        (u, left), (v, right) = found.product(ij, k), found.product(i, jk)
        assert (s * u, left) == (t * v, right)


@DIMENSIONS
def test_terms_and_sums_are_all_products(dimensions):
    found = algebra(dimensions)
    assert len(found.terms) == len({term[:2] for term in found.terms}) == 4**dimensions
    for i, j, k, sign, path in found.terms:
        assert found.product(i, j) == (sign, k)
        assert found.paths[path] == (found.grades[i], found.grades[j], found.grades[k])
    for places in [(2, 0, 1), (0, 1, 2), (1, 0, 2)]:
        listed = {
            (path, blade, *products)
            for path, blades in enumerate(found.sums(*places))
            for blade, all_products in blades
            for products in all_products
        }
        assert listed == {(term[4], *(term[place] for place in places), term[3]) for term in found.terms}


# The formulas


@DIMENSIONS
@NORMALIZED
@PRODUCTS
def test_the_formulas_and_their_gradients(dimensions, normalized, product):
    """By table and by terms; autograd against differences; gradients written out, and the operator's, against it."""
    *leaves, dout = (t.double() for t in drawn(product, dimensions, 2, 3))
    leaves = [leaf.requires_grad_() for leaf in leaves]
    by_terms, dense, backward = FORMULAS[product]
    out, by_operator = by_terms(*leaves, normalized), OPERATORS[product](*leaves, normalized)
    torch.testing.assert_close([dense(*leaves, normalized), by_operator], [out, out])
    assert torch.autograd.gradcheck(lambda *leaves: by_terms(*leaves, normalized), leaves)
    found = torch.autograd.grad(out, leaves, dout)
    torch.testing.assert_close(backward(dout, *(leaf.detach() for leaf in leaves), normalized), found)
    torch.testing.assert_close(torch.autograd.grad(by_operator, leaves, dout), found)


@DIMENSIONS
@NORMALIZED
def test_the_published_form_is_the_same_formula_in_one_graph(dimensions, normalized):
    *leaves, dout = (t.double() for t in drawn("sgp", dimensions, 2, 3))
    leaves = [leaf.requires_grad_() for leaf in leaves]
    out, expected = (form(*leaves, normalized) for form in (published.sgp, reference.sgp))
    torch.testing.assert_close(out, expected)
    gradients = [torch.autograd.grad(of, leaves, dout) for of in (out, expected)]
    torch.testing.assert_close(*gradients)
    if (dimensions, normalized) == (2, True):  # it takes seconds
        whole = torch.compile(published.sgp, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(whole(*leaves, normalized), expected)


@DIMENSIONS
def test_gate_normalization_and_linear(dimensions):
    x = drawn("sgp", dimensions, 2, 3)[0].double().requires_grad_()
    matrices, bias = (torch.randn(*shape).double().requires_grad_() for shape in [(dimensions + 1, 3, 3), (3,)])
    torch.testing.assert_close(reference.gate(x)[0], torch.nn.functional.gelu(x[0]))
    for part in reference.normalize(x).split(algebra(dimensions).sizes):
        torch.testing.assert_close(part.square().sum(0).mean(1), torch.ones(2).double(), rtol=1e-4, atol=0)
    for function, *leaves in ((reference.gate, x), (reference.normalize, x), (reference.linear, x, matrices, bias)):
        assert torch.autograd.gradcheck(function, leaves)
    y = reference.linear(x, matrices, bias)
    for blade, grade in enumerate(algebra(dimensions).grades):
        torch.testing.assert_close(y[blade], x[blade] @ matrices[grade] + (bias if blade == 0 else 0))


# Equivariance


@DIMENSIONS
@NORMALIZED
@PRODUCTS
@pytest.mark.parametrize("reflection", [False, True], ids=["rotation", "reflection"])
def test_every_layer_turns_with_its_input(dimensions, normalized, product, reflection):
    q = orthogonal(dimensions, reflection)
    x = drawn("sgp", dimensions, 3, 5)[0].double()
    x_turned = turned(x, q)
    for _ in range(3):
        layer = CliffordLayer(dimensions, 5, product, normalized).double()
        torch.nn.init.normal_(layer.bias)
        x, x_turned = layer(x), layer(x_turned)
        torch.testing.assert_close(x_turned, turned(x, q), rtol=1e-9, atol=1e-9 * x.abs().max().item())
    assert x.abs().max() > 0


def test_what_no_layer_may_do_is_seen():
    """A bias on a vector, or a path with the wrong sign, is not equivariant."""
    q, x = orthogonal(3, True), drawn("sgp", 3, 3, 5)[0].double()
    assert (turned(x, q) + 1 - turned(x + 1, q)).abs().max() > 0.1
    signs = torch.ones(8, 1, 1).double()
    signs[5] = -1
    assert (signs * turned(x, q) - turned(signs * x, q)).abs().max() > 0.1


# The operators


@PRODUCTS
@pytest.mark.parametrize(("dimensions", "normalized"), [(2, True), (3, False)])
@DEVICES
def test_the_operators_are_what_torch_expects(product, dimensions, normalized, device):
    *leaves, dout = (t.to(device) for t in drawn(product, dimensions, 3, 5))
    forward, backward = (getattr(torch.ops.clifford, name).default for name in (product, f"{product}_backward"))
    how = (normalized,) if product == "sgp" else (normalized, "ieee")
    made = () if product == "sgp" else forward(*leaves, *how)
    torch.library.opcheck(backward, (dout, *leaves, *made, *how))
    torch.library.opcheck(forward, (*(t.clone().requires_grad_() for t in leaves), *how))


@PRODUCTS
@DEVICES
def test_second_derivatives_are_refused_in_one_line(product, device):
    layer, x = CliffordLayer(3, 5, product).to(device), drawn("sgp", 3, 3, 5)[0].to(device).requires_grad_()
    (dx,) = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=rf"clifford.{product} has first derivatives only.*reference.{product}"):
        dx.square().sum().backward()


@PRODUCTS
@DEVICES
def test_torch_compile_sees_through(product, device):
    layer, x = CliffordLayer(3, 5, product).to(device), drawn("sgp", 3, 3, 5)[0].to(device)
    outs = [function(x) for function in (torch.compile(layer, fullgraph=True, backend="aot_eager"), layer)]
    gradients = [torch.autograd.grad(out.square().sum(), list(layer.parameters())) for out in outs]
    torch.testing.assert_close([outs[0], *gradients[0]], [outs[1], *gradients[1]])


@PRODUCTS
@DEVICES
def test_autocast(product, device):
    layer, x = CliffordLayer(3, 5, product).to(device), drawn("sgp", 3, 4, 5)[0].to(device).requires_grad_()
    true = layer(x)
    with torch.autocast(device, torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), true, rtol=0.1, atol=0.1)
    out.float().square().sum().backward()
    for leaf in (x, *layer.parameters()):
        assert leaf.grad.dtype == torch.float32 and leaf.grad.isfinite().all()


X = torch.zeros(4, 3, 5)
WEIGHTS = {"sgp": torch.zeros(5, 10), "fcgp": torch.zeros(10, 5, 5)}
WRONG = {
    "at least one feature": lambda x, y, w: (x[..., :0], y[..., :0], w),
    "4 or 8 blades": lambda x, y, w: (x[:3], y[:3], w),
    r"y must have the shape of x, \(4, 3, 5\), not \(4, 2, 5\)": lambda x, y, w: (x, y[:, :2], w),
    r"(w|W) must be .* not \(4, ": lambda x, y, w: (x, y, w[:4]),
    "of one type, not torch.float32(,| and) torch.float16": lambda x, y, w: (x, y.half(), w),
    "x must be of float32, float16 or bfloat16 .* not torch.int64": lambda x, y, w: (x.long(), y.long(), w.long()),
    "on one device, not on cpu, cpu and meta": lambda x, y, w: (x, y, w.to("meta")),
}
CASES = [
    *((message, product, change) for (message, change), product in zip(WRONG.items(), cycle(OPERATORS), strict=False)),
    ("precision must be one of ieee, tf32x3, tf32, not 'fp8'", "fcgp", lambda x, y, w: (x, y, w, True, "fp8")),
]


@pytest.mark.parametrize(("message", "product", "change"), CASES)
def test_what_does_not_fit_is_said_in_a_line(message, product, change):
    with pytest.raises(ValueError, match=message) as error:
        OPERATORS[product](*change(X, X, WEIGHTS[product]))
    assert "\n" not in str(error.value)


# The modules


MODULES = {"sgp": (SGP2d, SGP3d), "fcgp": (FCGP2d, FCGP3d)}


@DIMENSIONS
@NORMALIZED
@PRODUCTS
def test_modules(product, dimensions, normalized):
    x, y, *_ = drawn(product, dimensions, 3, 5)
    made, again = (MODULES[product][dimensions - 2](5, normalize=normalized) for _ in range(2))
    torch.testing.assert_close(made(x, y), FORMULAS[product][0](x, y, made.weight, normalized))
    again.load_state_dict(made.state_dict())
    torch.testing.assert_close(again(x, y), made(x, y))
    assert again.weight.stride() == made.weight.stride()


@DIMENSIONS
@PRODUCTS
def test_a_layer(dimensions, product):
    layer, x = CliffordLayer(dimensions, 64, product), drawn("sgp", dimensions, 3, 64)[0]
    torch.nn.init.normal_(layer.bias)
    expected = reference.layer(x, layer.linear, layer.bias, layer.product.weight)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    spread = {"sgp": (64 * (dimensions + 1)) ** -0.5, "fcgp": 64**-0.5}[product]
    assert layer.linear.std().item() == pytest.approx(spread, rel=0.05)


LAYER = CliffordLayer(2, 5)


@pytest.mark.parametrize(("message", "made"), {
    "dimensions must be 2 or 3, not 4": partial(algebra, 4),
    "no product 'dot' in 3 dimensions": partial(CliffordLayer, 3, 5, "dot"),
    "precision is of matrix products: sgp has none": partial(CliffordLayer, 3, 5, precision="tf32"),
    "x must be of the layer's type, torch.float32, not torch.float64": partial(LAYER, X.double()),
    r"x must be \(8, batch, 5\), not \(4, 3, 5\)": partial(CliffordLayer(3, 5), X),
}.items())  # fmt: skip
def test_what_does_not_exist_or_does_not_fit_a_layer(message, made):
    with pytest.raises(ValueError, match=message):
        made()
