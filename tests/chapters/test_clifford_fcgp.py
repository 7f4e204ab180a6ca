"""The fully connected geometric product: its kernels and its operator against the formulas in float64.

Without a GPU the kernels run in Triton's interpreter, in a process of its own, and the operator here runs the
reference; with one they run there and on the GPU.
"""

import sys
from importlib.util import find_spec

import pytest
import torch

from common.pairs.pair import ROOT

sys.path.append(str(ROOT / "ch5"))  # the package by the name that pairs import it by: its operators exist once
from clifford import reference
from clifford.algebra import algebra
from clifford.fcgp_ops import fcgp

FLOAT, VERSION, BFLOAT = torch.float32, torch.float16, torch.bfloat16
DEVICES = ("cpu", pytest.param("cuda", marks=pytest.mark.gpu))
GPU = pytest.mark.gpu

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")


# To call the kernels: here on a GPU, elsewhere in the interpreter, which is chosen before Triton is first imported


@pytest.fixture
def call(run_on):
    """call(function, device, *arguments): what a function of this file returns, from there."""

    def on(function, device, *arguments, **how):
        moved = [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments]
        return [part.cpu() for part in run_on(device, function, *moved, **how)]

    return on


@pytest.fixture(autouse=True)
def _same_numbers_in_every_run():
    torch.manual_seed(0)


def drawn(dimensions, batch, features, dtype=FLOAT):
    """x, y, W and the gradient of the answer."""
    shape, paths = (2**dimensions, batch, features), len(algebra(dimensions).paths)
    x, y, gradient = (torch.randn(shape).to(dtype) for _ in range(3))
    return x, y, (torch.randn(paths, features, features) / features**0.5).to(dtype), gradient


def by_operator(x, y, W, gradient, normalized=True, precision="ieee"):
    """out, dx, dy, dW by the operator and its autograd."""
    leaves = [t.detach().requires_grad_() for t in (x, y, W)]
    out = fcgp(*leaves, normalized, precision)
    return [out.detach(), *torch.autograd.grad(out, leaves, gradient)]


def fused(x, y, W, gradient, normalized=True):
    from clifford.fcgp_fused import forward_fused

    return [forward_fused(x, y, W, normalized)[0]]


def by_formulas(x, y, W, gradient, normalized=True):
    return [reference.fcgp(x, y, W, normalized), *reference.fcgp_backward(gradient, x, y, W, normalized)]


# What is right: as near to the formulas in float64 as the formulas are in the tensors' own type


def error(found, right):
    return float((found.double() - right).norm() / right.norm())


def assert_right(found, inputs, normalized=True):
    """`found` is out, or out, dx, dy, dW. NaN fails, too."""
    right = by_formulas(*(t.double() for t in inputs), normalized)
    own = by_formulas(*inputs, normalized)
    for name, mine, theirs, exact in zip(("out", "dx", "dy", "dW"), found, own, right, strict=False):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        limit = 4 * error(theirs, exact) + 4 * torch.finfo(mine.dtype).eps
        assert error(mine, exact) <= limit, f"{name} is off by {error(mine, exact):.1e}, more than {limit:.1e}"


def cases(everywhere, on_gpu):
    """Parameters of tests: each case of `everywhere` on both devices, those of `on_gpu` there alone."""
    here = [pytest.param("cpu", *case) for case in everywhere]
    return here + [pytest.param("cuda", *case, marks=GPU) for case in (*everywhere, *on_gpu)]


# What the interpreter leaves out: what the pairs' checks have, too; bfloat16, which it cuts off; large ones
EVERYWHERE = [
    (1, 1, FLOAT, "ieee"), (17, 2, FLOAT, "ieee"), (2, 129, FLOAT, "ieee"), (2, 127, VERSION, "ieee"),
    (17, 2, FLOAT, "tf32x3"),  # of 17 rows the last is the second part of the batch
]  # fmt: skip
ON_GPU = [
    (2, 3, FLOAT, "ieee"), (1, 1, FLOAT, "tf32x3"), (3, 127, BFLOAT, "ieee"),
    (1000, 256, FLOAT, "ieee"), (1000, 256, VERSION, "ieee"), (1000, 256, BFLOAT, "ieee"),
]  # fmt: skip


@needs_triton
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize(("device", "batch", "features", "dtype", "precision"), cases(EVERYWHERE, ON_GPU))
def test_kernels_compute_what_the_formulas_say(call, device, dimensions, batch, features, dtype, precision, normalized):
    inputs = drawn(dimensions, batch, features, dtype)
    assert_right(call(by_operator, device, *inputs, normalized=normalized, precision=precision), inputs, normalized)


@needs_triton
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize(
    ("device", "batch", "features", "dtype"),
    cases([(1, 1, FLOAT), (3, 70, FLOAT), (65, 3, VERSION)], [(3, 70, BFLOAT)]),
)
def test_the_fused_form_computes_the_same(call, device, dimensions, batch, features, dtype):
    for normalized in (True, False):
        inputs = drawn(dimensions, batch, features, dtype)
        assert_right(call(fused, device, *inputs, normalized=normalized), inputs, normalized)


@GPU
@pytest.mark.parametrize(("batch", "features", "normalized"), [(512, 256, True), (256, 512, False)])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_three_tf32_products_are_nearly_float32_and_one_is_not(dimensions, batch, features, normalized):
    inputs = drawn(dimensions, batch, features)
    right = by_formulas(*(t.double() for t in inputs), normalized)
    off = {}
    for precision in ("ieee", "tf32x3", "tf32"):
        found = by_operator(*(t.cuda() for t in inputs), normalized, precision)
        off[precision] = [error(mine.cpu(), exact) for mine, exact in zip(found, right, strict=True)]
    for ieee, three, one in zip(*off.values(), strict=True):
        assert three < 10 * ieee and three < one / 20, off


@needs_triton
def test_what_was_set_for_float32_stays_set():
    from clifford.fcgp import float32_in

    general, products = torch.backends, torch.backends.cuda.matmul
    before = general.fp32_precision, products.fp32_precision
    try:
        general.fp32_precision = products.fp32_precision = "none"
        with float32_in("ieee", FLOAT), float32_in("tf32", VERSION):
            assert products.fp32_precision in ("none", "ieee")
        general.fp32_precision = "tf32"
        with float32_in("tf32", FLOAT):
            assert products.fp32_precision == "tf32"
        general.fp32_precision = "ieee"
        assert products.fp32_precision == "ieee", "it no longer follows"
        for wanted in ("tf32", "tf32x3"):
            with float32_in(wanted, FLOAT):
                assert products.fp32_precision == "tf32"
            assert products.fp32_precision == "ieee"
    finally:
        general.fp32_precision, products.fp32_precision = before


@needs_triton
def test_long_sums_of_split_numbers_are_made_in_parts(monkeypatch):
    from clifford import fcgp as kernels

    monkeypatch.setattr(kernels, "DEPTH", 8)
    left, right = torch.randn(2, 4, 5, 21), torch.randn(2, 4, 21, 3)
    for add in (False, True):
        out, (high, low), (large, small) = torch.ones(4, 5, 3), left, right
        kernels.multiply([high, low], [large, small], out, add)
        torch.testing.assert_close(out, add + low @ large + high @ small + high @ large)


@needs_triton
@pytest.mark.parametrize("device", DEVICES)
def test_repeated_runs_give_equal_bits(call, device):
    inputs = drawn(2, 17, 2) if device == "cpu" else drawn(3, 1000, 256)
    for precision in ("ieee", "tf32x3"):
        first, second = (call(by_operator, device, *inputs, precision=precision) for _ in range(2))
        assert all(a.equal(b) for a, b in zip(first, second, strict=True))


@needs_triton
@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_that_is_1_percent_too_large_is_noticed(call, device):
    inputs = drawn(2, 5, 7)
    found = call(by_operator, device, *inputs)
    assert_right(found, inputs)
    for which, name in enumerate(("dx", "dy", "dW"), 1):
        wrong = [1.01 * part if at == which else part for at, part in enumerate(found)]
        with pytest.raises(AssertionError, match=f"{name} is off by"):
            assert_right(wrong, inputs)


def test_gradients_are_those_of_finite_differences():
    x, y, W, _ = drawn(2, 2, 3, torch.float64)
    for normalized in (True, False):
        leaves = [t.clone().requires_grad_() for t in (x, y, W)]
        assert torch.autograd.gradcheck(lambda *t, normalized=normalized: fcgp(*t, normalized), leaves)


# The parts


def normalizations(source, gradient):
    """By the kernels: what is normalized, what it was divided by, and the gradient of the source."""
    from clifford.fcgp import normalize, normalize_backward

    out = torch.empty_like(source)
    root = source.new_empty(algebra(3).dimensions + 1, source.shape[1])
    normalize(source, out, root, source.shape[1])
    return [out, root, normalize_backward(gradient, out, root, source.shape[1])]


@needs_triton
@pytest.mark.parametrize("device", DEVICES)
def test_rows_wider_than_a_block_are_normalized(call, device):
    source, gradient = torch.randn(8, 3, 1500), torch.randn(8, 3, 1500)
    out, _, dsource = call(normalizations, device, source, gradient)
    assert error(out, reference.normalize(source.double())) < 1e-6
    leaf = source.double().requires_grad_()
    (right,) = torch.autograd.grad(reference.normalize(leaf), leaf, gradient.double())
    assert error(dsource, right) < 1e-6


def parts(t):
    from clifford.fcgp import split

    return split(t, 2)


@needs_triton
@pytest.mark.parametrize("device", DEVICES)
def test_a_number_is_the_sum_of_its_tf32_number_and_the_rest(call, device):
    t = torch.randn(1100) * torch.logspace(-30, 30, 1100)
    high, low = call(parts, device, t)
    assert torch.equal(high + low, t)
    assert not (high.view(torch.int32) & 0x1FFF).any()  # the 13 bits that TF32 does not have
    assert (low.abs() <= t.abs() * 2**-11).all()


def compilations():
    from clifford import fcgp as kernels
    from clifford import fcgp_fused

    names = [(module, name) for module in (kernels, fcgp_fused) for name in vars(module) if name.endswith("_kernel")]
    found = {name: getattr(module, name).device_caches.values() for module, name in names}
    return {name: sum(len(cache[0]) for cache in caches) for name, caches in found.items()}


@GPU
def test_a_new_batch_size_compiles_nothing():
    def run(batch):
        inputs = [t.cuda() for t in drawn(3, batch, 32)]
        for function, how in ((by_operator, {}), (by_operator, {"precision": "tf32x3"}), (fused, {})):
            function(*inputs, **how)

    run(1)
    before = compilations()
    for batch in (2, 16, 33, 100, 256):
        run(batch)
    assert all(before.values()) and compilations() == before


# The operator


@needs_triton
@pytest.mark.parametrize("device", DEVICES)
def test_tensors_may_lie_in_memory_in_any_way(call, device):
    x, y, W, gradient = inputs = drawn(2, 3, 5)
    spread = [t.repeat_interleave(2, -1)[..., ::2] for t in (x, gradient)]
    assert_right(call(by_operator, device, spread[0], y.mT.contiguous().mT, W.mT.contiguous().mT, spread[1]), inputs)


@needs_triton
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("normalized", [True, False])
def test_a_batch_of_one_may_lie_in_memory_in_any_way(call, device, normalized):
    """The strides of a dimension of size 1 say nothing, and PyTorch takes such tensors for contiguous."""
    x, y, W, gradient = inputs = drawn(3, 1, 5)
    parts = []
    for t in (x, y, gradient):
        larger = torch.randn(9, 8, 5)
        larger[:1] = t.transpose(0, 1)
        parts.append(larger[:1].transpose(0, 1))
    x, y, gradient = parts
    assert x.is_contiguous() and x.stride(1) != x.shape[2]
    assert_right(call(by_operator, device, x, y, W, gradient, normalized=normalized), inputs, normalized)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_an_empty_batch_gives_an_empty_answer(device, dimensions):
    inputs = [t.to(device) for t in drawn(dimensions, 0, 5)]
    out, dx, dy, dW = by_operator(*inputs)
    assert out.shape == dx.shape == dy.shape == (2**dimensions, 0, 5)
    assert dW.shape == inputs[2].shape and not dW.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y, W: (x[0], y, W), "x must be"),
        (lambda x, y, W: (x[:3], y[:3], W), "4 or 8 blades"),
        (lambda x, y, W: (x[..., :0], y[..., :0], W[:, :0, :0]), "at least one feature"),
        (lambda x, y, W: (x, y[:, :1], W), "y must have the shape of x"),
        (lambda x, y, W: (x, y, W[:9]), "W must be"),
        (lambda x, y, W: (x, y, W[..., :2]), "W must be"),
        (lambda x, y, W: (x, y, W.half()), "one type"),
        (lambda x, y, W: (x, y, W.to("meta")), "one device"),
        (lambda x, y, W: (x.long(), y.long(), W.long()), "float32, float16 or bfloat16"),
        (lambda x, y, W: (x, y, W, True, "fp8"), "precision must be one of"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(change, message):
    x, y, W, _ = drawn(2, 2, 3)
    with pytest.raises(ValueError, match=message) as raised:
        fcgp(*change(x, y, W))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("normalized", [True, False])
def test_torch_finds_the_operator_sound(device, normalized):
    x, y, W, _ = (t.to(device).requires_grad_() for t in drawn(2, 3, 4))
    torch.library.opcheck(torch.ops.clifford.fcgp, (x, y, W, normalized, "ieee"))


@pytest.mark.parametrize("device", DEVICES)
def test_torch_compile_sees_through(device):
    inputs = [t.to(device) for t in drawn(3, 3, 4)]
    compiled = torch.compile(fcgp, fullgraph=True, backend="aot_eager")
    leaves = [[t.clone().requires_grad_() for t in inputs[:3]] for _ in range(2)]
    for function, mine in zip((compiled, fcgp), leaves, strict=True):
        function(*mine).backward(inputs[3])
    assert all(a.grad.equal(b.grad) for a, b in zip(*leaves, strict=True))


@pytest.mark.parametrize("device", DEVICES)
def test_autocast_gives_its_type_and_gradients_of_the_weights_own(device):
    x, y, W, _ = (t.to(device).requires_grad_() for t in drawn(2, 3, 4))
    with torch.autocast(device, dtype=BFLOAT):
        out = fcgp(x, y, W)
    out.float().sum().backward()
    assert out.dtype == BFLOAT and x.grad.dtype == W.grad.dtype == FLOAT
