"""Chapter 5's algebra, its layers in plain PyTorch, and the kernels of the weighted product at their edges.

What is right comes from reference.py in float64, whose gradients are checked against differences. Without a GPU the
kernels run in Triton's interpreter, in a process of its own; with one they run there and on the GPU.
"""

import sys
from functools import partial
from importlib.util import find_spec
from itertools import combinations, product

import pytest
import torch

from common.pairs.pair import ROOT

sys.path.append(str(ROOT / "ch5"))  # the package by the name that pairs import it by: its operators exist once
from clifford import CliffordLayer, FCGP2d, FCGP3d, SGP2d, SGP3d, algebra, ops, reference

BLADES = {2: "1 e1 e2 e12", 3: "1 e1 e2 e3 e12 e13 e23 e123"}
PATHS = {
    2: "00>0 01>1 02>2 11>0 10>1 12>1 11>2 22>0 21>1 20>2",
    3: "00>0 01>1 02>2 03>3 11>0 10>1 12>1 11>2 13>2 12>3 22>0 21>1 23>1 20>2 22>2 21>3 33>0 32>1 31>2 30>3",
}
DIMENSIONS = pytest.mark.parametrize("dimensions", [2, 3])
NORMALIZED = pytest.mark.parametrize("normalized", [True, False], ids=["normalized", "plain"])


@pytest.fixture(autouse=True)
def _same_numbers_in_every_run():
    torch.manual_seed(0)


def drawn(dimensions, batch, features, dtype=torch.float32, connected=False):
    """x, y, the weights of the product (SGP: as (P, N), transposed), and a gradient of the answer; on the CPU."""
    found = algebra(dimensions)
    x, y, dout = torch.randn(3, len(found.blades), batch, features).to(dtype)
    if connected:
        return x, y, torch.randn(len(found.paths), features, features).to(dtype) / features**0.5, dout
    return x, y, torch.randn(len(found.paths), features).to(dtype).mT, dout


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
    at = {name: place for place, name in enumerate(BLADES[3].split())}
    for left, right, sign, out in [
        ("e1", "e1", 1, "1"), ("e2", "e1", -1, "e12"), ("e12", "e12", -1, "1"), ("e1", "e23", 1, "e123"),
        ("e123", "e123", -1, "1"), ("e12", "e23", 1, "e13"), ("e13", "e2", -1, "e123"), ("e3", "e123", 1, "e12"),
    ]:  # fmt: skip
        assert found.product(at[left], at[right]) == (sign, at[out]), (left, right)


@DIMENSIONS
def test_products_are_associative(dimensions):
    found = algebra(dimensions)
    for i, j, k in product(range(len(found.blades)), repeat=3):
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


def test_other_dimensions():
    with pytest.raises(ValueError, match="dimensions must be 2 or 3, not 4"):
        algebra(4)


# The formulas


@DIMENSIONS
@NORMALIZED
@pytest.mark.parametrize("connected", [False, True], ids=["sgp", "fcgp"])
def test_the_formulas_and_their_gradients(dimensions, normalized, connected):
    """By table and by terms; autograd against differences, and the gradients as written out against autograd."""
    *leaves, dout = (t.double() for t in drawn(dimensions, 2, 3, connected=connected))
    leaves = [leaf.requires_grad_() for leaf in leaves]
    name = "fcgp" if connected else "sgp"
    by_terms, dense, backward = (getattr(reference, name + end) for end in ("", "_dense", "_backward"))
    out = by_terms(*leaves, normalized)
    torch.testing.assert_close(dense(*leaves, normalized), out)
    assert torch.autograd.gradcheck(lambda *leaves: by_terms(*leaves, normalized), leaves)
    written = backward(dout, *(leaf.detach() for leaf in leaves), normalized)
    torch.testing.assert_close(written, torch.autograd.grad(out, leaves, dout))


@DIMENSIONS
def test_gate_normalization_and_linear(dimensions):
    x = drawn(dimensions, 2, 3)[0].double().requires_grad_()
    matrices, bias = (torch.randn(*shape).double().requires_grad_() for shape in [(dimensions + 1, 3, 3), (3,)])
    torch.testing.assert_close(reference.gate(x)[0], torch.nn.functional.gelu(x[0]))
    for part in reference.normalize(x).split(algebra(dimensions).sizes):
        torch.testing.assert_close(part.square().sum(0).mean(1), torch.ones(2).double(), rtol=1e-4, atol=0)
    assert torch.autograd.gradcheck(reference.gate, [x])
    assert torch.autograd.gradcheck(reference.normalize, [x])
    assert torch.autograd.gradcheck(reference.linear, [x, matrices, bias])
    y = reference.linear(x, matrices, bias)
    for blade, grade in enumerate(algebra(dimensions).grades):
        torch.testing.assert_close(y[blade], x[blade] @ matrices[grade] + (bias if blade == 0 else 0))


# Equivariance


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


LAYERS = pytest.mark.parametrize("product", ["sgp", "fcgp"])


@DIMENSIONS
@NORMALIZED
@LAYERS
@pytest.mark.parametrize("reflection", [False, True], ids=["rotation", "reflection"])
def test_every_layer_turns_with_its_input(dimensions, normalized, product, reflection):
    q = orthogonal(dimensions, reflection)
    x = drawn(dimensions, 3, 5)[0].double()
    x_turned = turned(x, q)
    for _ in range(3):
        layer = CliffordLayer(dimensions, 5, product, normalized).double()
        torch.nn.init.normal_(layer.bias)
        x, x_turned = layer(x), layer(x_turned)
        torch.testing.assert_close(x_turned, turned(x, q), rtol=1e-9, atol=1e-9 * x.abs().max().item())
    assert x.abs().max() > 0


def test_what_no_layer_may_do_is_seen():
    """A bias on a vector, or a path with the wrong sign, is not equivariant."""
    q, x = orthogonal(3, True), drawn(3, 3, 5)[0].double()
    assert (turned(x, q) + 1 - turned(x + 1, q)).abs().max() > 0.1
    wrong = x.clone()
    wrong[5] = -wrong[5]
    wrong_turned = turned(x, q)
    wrong_turned[5] = -wrong_turned[5]
    assert (wrong_turned - turned(wrong, q)).abs().max() > 0.1


# The kernels: in Triton's interpreter, which is chosen before Triton is first imported, and on a GPU


@pytest.fixture
def call(run_on):
    """call(device, tensors, ...): what `answer` returns, from here or from the interpreter."""
    return lambda device, tensors, *how: run_on(device, answer, device, tensors, *how)


def answer(device, tensors, normalized, layout="contiguous"):
    """[out, dx, dy, dw] on the CPU."""
    x, y, w, dout = (LAYOUTS[layout](t.to(device)).detach() for t in tensors)
    leaves = [t.requires_grad_() for t in (x, y, w)]
    out = ops.sgp(*leaves, normalized)
    gradients = torch.autograd.grad(out, leaves, dout)
    return [out.detach().cpu(), *(t.cpu() for t in gradients)]


def every_other(x):
    return x.repeat_interleave(2, -1)[..., ::2]


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "every other": every_other,
    "expanded": lambda x: x[..., :1].expand(x.shape),
}
NEEDS_TRITON = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")


def devices(test):
    here = [pytest.param("cpu", marks=NEEDS_TRITON), pytest.param("cuda", marks=pytest.mark.gpu)]
    return pytest.mark.parametrize("device", here)(test)


def written(x, y, w, dout, normalized):
    """[out, dx, dy, dw] by the formulas, in the tensors' own type."""
    return [reference.sgp(x, y, w, normalized), *reference.sgp_backward(dout, x, y, w, normalized)]


def assert_as_near_as_the_formulas(actual, tensors, normalized):
    """No further from float64 than 5 times what the formulas are that round every operation to the tensors' type.

    Where a result is exact but for its own rounding, that of its type counts. Of few features the normalization leaves
    of a gradient little but rounding: there 20 times.
    """
    times = 5 if tensors[0].shape[2] > 3 else 20
    true, formulas = written(*(t.double() for t in tensors), normalized), written(*tensors, normalized)
    for name, mine, formula, right in zip(("out", "dx", "dy", "dw"), actual, formulas, true, strict=True):
        assert mine.dtype == tensors[0].dtype
        assert mine.shape == right.shape
        error, usual = mine.double() - right, formula.double() - right
        for size in (rms, largest):
            assert size(error) <= times * max(size(usual), torch.finfo(mine.dtype).eps / 2 * size(right)), name


def rms(x):
    return x.square().mean().sqrt().item()


def largest(x):
    return x.abs().max().item()


@devices
@DIMENSIONS
@NORMALIZED
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_kernels_are_as_near_as_the_formulas(device, dimensions, normalized, dtype, call):
    tensors = drawn(dimensions, 7, 37, dtype)
    assert_as_near_as_the_formulas(call(device, tensors, normalized), tensors, normalized)


@devices
@DIMENSIONS
@pytest.mark.parametrize(("batch", "features"), [(1, 1), (2, 3), (1, 129), (127, 2), (1, 600), (1, 1100)])
def test_odd_shapes(device, dimensions, batch, features, call):
    """From a row of one number to rows that no program holds."""
    tensors = drawn(dimensions, batch, features)
    assert_as_near_as_the_formulas(call(device, tensors, True), tensors, True)


@DIMENSIONS
@pytest.mark.gpu
@pytest.mark.parametrize(
    ("batch", "features"), list(product([1, 2, 3, 127, 129], [1, 2, 3, 127, 129, 512, 1024, 2500]))
)
def test_odd_shapes_on_a_gpu(dimensions, batch, features, call):
    for normalized in (True, False):
        tensors = drawn(dimensions, batch, features)
        assert_as_near_as_the_formulas(call("cuda", tensors, normalized), tensors, normalized)


@devices
@DIMENSIONS
@pytest.mark.parametrize("layout", list(LAYOUTS)[1:])
def test_layouts(device, dimensions, layout, call):
    tensors = drawn(dimensions, 3, 5)
    actual = call(device, tensors, True, layout)
    assert_as_near_as_the_formulas(actual, [LAYOUTS[layout](t) for t in tensors], True)


@devices
@DIMENSIONS
@NORMALIZED
def test_kernels_turn_with_their_input(device, dimensions, normalized, call):
    x, y, w, dout = drawn(dimensions, 4, 9)
    actual = call(device, (x, y, w, dout), normalized)
    for reflection in (False, True):
        q = orthogonal(dimensions, reflection)
        around = call(device, (turned(x, q), turned(y, q), w, turned(dout, q)), normalized)
        for mine, other in zip(actual[:3], around[:3], strict=True):
            torch.testing.assert_close(other, turned(mine, q), rtol=1e-5, atol=1e-5 * mine.abs().max().item())
        torch.testing.assert_close(around[3], actual[3], rtol=1e-5, atol=1e-5 * actual[3].abs().max().item())


@devices
@DIMENSIONS
def test_repeated_runs_give_equal_bits(device, dimensions, call):
    tensors = drawn(dimensions, 11, 17)
    first, again = call(device, tensors, True), call(device, tensors, True)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


@devices
@DIMENSIONS
@NORMALIZED
def test_a_gradient_that_is_1_percent_too_large_is_seen(device, dimensions, normalized, call):
    tensors = drawn(dimensions, 4, 9)
    right = call(device, tensors, normalized)
    assert_as_near_as_the_formulas(right, tensors, normalized)
    for place, name in enumerate(("dx", "dy", "dw"), 1):
        wrong = [1.01 * part if at == place else part for at, part in enumerate(right)]
        with pytest.raises(AssertionError, match=name):
            assert_as_near_as_the_formulas(wrong, tensors, normalized)


@devices
@DIMENSIONS
@NORMALIZED
def test_a_row_does_not_harm_others(device, dimensions, normalized, call):
    x, y, w, dout = drawn(dimensions, 6, 5)
    x[1, 2, 3] = float("nan")
    out, dx, dy, dw = call(device, (x, y, w, dout), normalized)
    for rows in (out, dx, dy):
        assert rows[:, [0, 1, 3, 4, 5]].isfinite().all()
        assert rows[:, 2].isnan().any()
    assert dw.isnan().any()


@devices
def test_an_empty_batch(device, call):
    out, dx, dy, dw = call(device, drawn(3, 0, 5), True)
    assert out.shape == dx.shape == dy.shape == (8, 0, 5)
    assert dw.shape == (5, 20) and not dw.any()


@pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
def test_rows_are_on_their_way_where_all_programs_have_room_for_two_and_what_threads_exchange():
    from clifford.sgp import cut

    of_smaller_gpus, of_larger = 163 * 1024, 227 * 1024
    assert cut(4, 1023, True, 4, 97 * 1024).stages == 1  # the rows alone take 96 KiB
    assert [cut(8, 512, True, itemsize, of_smaller_gpus).stages for itemsize in (2, 4)] == [2, 1]
    assert [cut(8, 512, True, itemsize, of_larger).stages for itemsize in (2, 4)] == [2, 2]
    for smallest in (99 * 1024, of_smaller_gpus, of_larger):
        assert [cut(8, 512, False, itemsize, smallest).stages for itemsize in (2, 4)] == [3, 2]
        assert [cut(4, 1024, False, itemsize, smallest).stages for itemsize in (2, 4)] == [3, 2]
    assert cut(8, 1024, False, 4, 99 * 1024).stages == 1  # 128 KiB


@pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
@pytest.mark.parametrize("columns", [1, 31, 128, 200, 512, 1000, 1024, 1025, 5000])
@pytest.mark.parametrize("capability", [8, 9, 10])
def test_every_row_is_cut_into_whole_warps(columns, capability):
    from clifford.sgp import CUTS, TILE, cut

    for blades, backward, itemsize in CUTS:
        by = cut(blades, columns, backward, itemsize, 227 * 1024, capability)
        assert by.warps & (by.warps - 1) == 0 and 1 <= by.warps <= 32  # as Triton wants them
        assert by.rows * by.block >= TILE[backward] and (by.rows == 1 or by.block >= columns)
        assert by.block >= columns or columns > 1024
        assert by.per_sm >= 1


@pytest.mark.gpu
@DIMENSIONS
def test_a_batch_of_another_size_compiles_nothing(dimensions):
    from clifford.sgp import add_kernel, sgp_backward_kernel, sgp_kernel

    def compiled():
        kernels = (sgp_kernel, sgp_backward_kernel, add_kernel)
        return [sum(len(cache[0]) for cache in kernel.device_caches.values()) for kernel in kernels]

    answer("cuda", drawn(dimensions, 4096, 64), True)
    before = compiled()
    for batch in (1, 2, 16, 17, 129, 1024):
        answer("cuda", drawn(dimensions, batch, 64), True)
    assert all(before) and compiled() == before


@pytest.mark.gpu
@pytest.mark.parametrize("normalized", [True, False])
def test_more_than_2_to_the_31_elements(normalized):
    batch, features = 2**19 + 3, 513
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 32 * 2**30:
        pytest.skip("needs 32 GiB of GPU memory")
    x, y, w, dout = drawn(3, 3, features, torch.float16)
    large = [torch.zeros(8, batch, features, dtype=torch.float16, device="cuda") for _ in range(3)]
    for whole, last in zip(large, (x, y, dout), strict=True):
        whole[:, -3:] = last.cuda()
    x_large, y_large, dout_large = large
    leaves = [x_large.requires_grad_(), y_large.requires_grad_(), w.cuda().requires_grad_()]
    out = ops.sgp(*leaves, normalized)
    dx, dy, dw = torch.autograd.grad(out, leaves, dout_large)
    actual = [*(part[:, -3:].detach().cpu() for part in (out, dx, dy)), dw.cpu()]
    assert_as_near_as_the_formulas(actual, (x, y, w, dout), normalized)


# The operator


@DIMENSIONS
@NORMALIZED
def test_the_operator_is_what_torch_expects(dimensions, normalized):
    *leaves, dout = drawn(dimensions, 3, 5)
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    torch.library.opcheck(torch.ops.clifford.sgp.default, (*leaves, normalized))
    leaves = [leaf.detach() for leaf in leaves]
    torch.library.opcheck(torch.ops.clifford.sgp_backward.default, (dout, *leaves, normalized))


@LAYERS
def test_torch_compile_sees_through(product):
    layer = CliffordLayer(2, 5, product)
    x = drawn(2, 3, 5)[0]
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    compiled(x).square().sum().backward()
    found = [parameter.grad.clone() for parameter in layer.parameters()]
    torch.testing.assert_close(compiled(x), layer(x))
    layer.zero_grad()
    layer(x).square().sum().backward()
    torch.testing.assert_close(found, [parameter.grad for parameter in layer.parameters()])


@LAYERS
def test_autocast(product):
    layer, x = CliffordLayer(3, 5, product), drawn(3, 4, 5)[0]
    true = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), true, rtol=0.1, atol=0.1)
    out.float().square().sum().backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in layer.parameters())
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@LAYERS
def test_a_layer_without_data_has_shapes(product):
    layer = CliffordLayer(2, 5, product).to("meta")
    x = torch.empty(4, 3, 5, device="meta", requires_grad=True)
    out = layer(x)
    assert (out.shape, out.device.type) == (x.shape, "meta")
    out.sum().backward()
    assert x.grad.shape == x.shape
    assert all(parameter.grad.shape == parameter.shape for parameter in layer.parameters())


X, W2 = torch.zeros(4, 3, 5), torch.zeros(5, 10)
WRONG = {
    "at least one feature": (X[..., :0], X[..., :0], W2[:0]),
    "4 or 8 blades": (X[:3], X[:3], W2),
    r"not \(4, 3\)": (X[..., 0], X[..., 0], W2),
    r"y must have the shape of x, \(4, 3, 5\), not \(4, 2, 5\)": (X, X[:, :2], W2),
    r"w must be \(features, paths\), \(5, 10\), not \(5, 20\)": (X, X, torch.zeros(5, 20)),
    "of one type, not torch.float32 and torch.float16": (X, X.half(), W2),
    "x must be of float32, float16 or bfloat16 .* not torch.int64": (X.long(), X.long(), W2),
    "w must be of float32, float16 or bfloat16 .* not torch.bool": (X, X, W2.bool()),
    "on one device, not on cpu, cpu and meta": (X, X, W2.to("meta")),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_does_not_fit_is_said_in_a_line(message):
    with pytest.raises(ValueError, match=message) as error:
        ops.sgp(*WRONG[message])
    assert "\n" not in str(error.value)


# The modules


@pytest.mark.parametrize(("module", "dimensions"), [(SGP2d, 2), (SGP3d, 3), (FCGP2d, 2), (FCGP3d, 3)])
@NORMALIZED
def test_modules(module, dimensions, normalized):
    x, y, *_ = drawn(dimensions, 3, 5)
    made = module(5, normalize=normalized)
    formula = reference.sgp if module in (SGP2d, SGP3d) else reference.fcgp
    torch.testing.assert_close(made(x, y), formula(x, y, made.weight, normalized))
    again = module(5, normalize=normalized)
    again.load_state_dict(made.state_dict())
    torch.testing.assert_close(again(x, y), made(x, y))
    assert again.weight.stride() == made.weight.stride()


@DIMENSIONS
@LAYERS
def test_a_layer(dimensions, product):
    layer, x = CliffordLayer(dimensions, 64, product), drawn(dimensions, 3, 64)[0]
    torch.nn.init.normal_(layer.bias)
    expected = reference.layer(x, layer.linear, layer.bias, layer.product.weight)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    spread = {"sgp": (64 * (dimensions + 1)) ** -0.5, "fcgp": 64**-0.5}[product]
    assert layer.linear.std().item() == pytest.approx(spread, rel=0.05)


def test_a_layer_that_does_not_exist():
    with pytest.raises(ValueError, match="no product 'dot' in 3 dimensions"):
        CliffordLayer(3, 5, "dot")
    with pytest.raises(ValueError, match="no product 'sgp' in 4 dimensions"):
        CliffordLayer(4, 5)
    with pytest.raises(ValueError, match="at least one feature, not 0"):
        CliffordLayer(3, 0)
    with pytest.raises(ValueError, match=r"x must be \(8, batch, 5\), not \(4, 3, 5\)"):
        CliffordLayer(3, 5)(X)
    with pytest.raises(ValueError, match="at least one feature, not -1"):
        SGP2d(-1)
    for made in (partial(FCGP3d, 5), partial(CliffordLayer, 3, 5, "fcgp")):
        with pytest.raises(ValueError, match="precision must be one of ieee, tf32x3, tf32, not 'fp8'"):
            made(precision="fp8")
    with pytest.raises(ValueError, match="precision is of matrix products: sgp has none"):
        CliffordLayer(3, 5, precision="tf32")


def test_a_layer_says_what_does_not_fit():
    layer, x = CliffordLayer(2, 5), drawn(2, 3, 5)[0]
    for other in (torch.float64, torch.int32):
        with pytest.raises(ValueError, match=f"x must be of the layer's type, torch.float32, not {other}"):
            layer(x.to(other))
    with pytest.raises(ValueError, match="x must be on the layer's device, cpu, not on meta"):
        layer(x.to("meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x.bfloat16()).dtype == torch.bfloat16


def test_a_layer_s_precision_is_its_product_s():
    assert CliffordLayer(2, 5, "fcgp", precision="tf32x3").product.precision == "tf32x3"
    assert CliffordLayer(2, 5, "fcgp").product.precision == "ieee"


@LAYERS
def test_a_layer_learns(product):
    x, target = drawn(2, 16, 4)[:2]
    layer = CliffordLayer(2, 4, product)
    optimizer = torch.optim.Adam(layer.parameters(), 0.03)
    losses = []
    for _ in range(30):
        loss = (layer(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
