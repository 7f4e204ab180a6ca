"""The kernels of chapter 5's products, by their operators and alone, against the formulas in float64.

Without a GPU they run in Triton's interpreter, in a process of its own; with one there and on the GPU.
"""

import products
import pytest
import torch
from edges import skip_without, transposed
from products import DEVICES, DIMENSIONS, GPU, NORMALIZED, PRODUCTS, answer, assert_right, drawn, expanded, needs_triton

pytestmark = pytest.mark.rest  # kernels at their edges, in the interpreter
FLOAT, HALF, BFLOAT = torch.float32, torch.float16, torch.bfloat16


@pytest.fixture
def call(run_on):
    """call(device, ...): what `answer` returns, from here or from the interpreter."""
    return lambda device, *arguments, **how: run_on(device, answer, device, *arguments, **how)


def cases(everywhere, on_gpu):
    """Parameters of tests: each case of `everywhere` on both devices, those of `on_gpu` there alone."""
    here = [pytest.param("cpu", *case, marks=needs_triton) for case in everywhere]
    return here + [pytest.param("cuda", *case, marks=GPU) for case in (*everywhere, *on_gpu)]


# Small rows, odd tails and 16 bits are check sizes. Of 17 rows in two TF32 numbers the last is the second part
BOTH = [("sgp", 1, 600, FLOAT), ("sgp", 1, 1100, FLOAT), ("fcgp", 2, 129, FLOAT), ("fcgp", 17, 2, FLOAT, "tf32x3")]
ON_GPU = [  # rows that no program holds, programs with several tiles, bfloat16 in products
    ("sgp", 129, 2500, FLOAT), ("sgp", 3001, 33, FLOAT), ("sgp", 300, 719, HALF), ("sgp", 300, 1501, BFLOAT),
    ("fcgp", 1, 1, FLOAT, "tf32x3"), *(("fcgp", 1000, 256, dtype) for dtype in (FLOAT, HALF, BFLOAT)),
]  # fmt: skip


@DIMENSIONS
@NORMALIZED
@pytest.mark.parametrize(("device", "case"), cases([(case,) for case in BOTH], [(case,) for case in ON_GPU]), ids=str)
def test_kernels_compute_what_the_formulas_say(device, case, dimensions, normalized, call):
    of, batch, features, dtype, *precision = case
    inputs = drawn(of, dimensions, batch, features, dtype)
    assert_right(of, call(device, of, inputs, normalized, precision), inputs, normalized)


@PRODUCTS
def test_a_gradient_that_is_1_percent_too_large_is_seen(product):
    inputs = drawn(product, 3, 5, 7)
    right = products.by_formulas(product, *inputs)
    for index, name in enumerate(("dx", "dy", "dw"), 1):
        wrong = [1.01 * part if i == index else part for i, part in enumerate(right)]
        with pytest.raises(AssertionError, match=f"{name} is off by"):
            assert_right(product, wrong, inputs)


TWICE = [("sgp", 3, 7, 37, "ieee"), ("fcgp", 3, 5, 7, "ieee"), ("fcgp", 2, 17, 2, "tf32x3")]
LARGER = [("fcgp", 3, 1000, 256, precision) for precision in ("tf32x3", "ieee")]


@pytest.mark.parametrize(
    ("device", "product", "dimensions", "batch", "features", "precision"),
    cases(TWICE, LARGER),
)
def test_repeated_runs_give_equal_bits(device, product, dimensions, batch, features, precision, call):
    inputs, how = drawn(product, dimensions, batch, features), (precision,) if product == "fcgp" else ()
    assert all(map(torch.equal, *(call(device, product, inputs, True, how) for _ in range(2))))


@DEVICES
@PRODUCTS
@pytest.mark.parametrize("layout", [transposed, expanded])  # gaps: the stress draws
def test_tensors_may_lie_in_memory_in_any_way(device, product, layout, call):
    inputs = drawn(product, 3, 3, 5)
    actual = call(device, product, inputs, layout=layout)
    assert_right(product, actual, [layout(t) for t in inputs])


@DEVICES
def test_a_batch_of_one_may_lie_in_memory_in_any_way(device, call):
    """The strides of a dimension of size 1 say nothing, and PyTorch takes such tensors for contiguous."""
    inputs = drawn("fcgp", 3, 1, 5)
    x, y, w, dout = inputs
    x, y, dout = (torch.cat([t.swapdims(0, 1), torch.randn(8, 8, 5)])[:1].swapdims(0, 1) for t in (x, y, dout))
    assert x.is_contiguous() and x.stride(1) != 5
    assert_right("fcgp", call(device, "fcgp", (x, y, w, dout)), inputs)


@DEVICES
@PRODUCTS
def test_an_empty_batch_gives_an_empty_answer(device, product, call):
    inputs = drawn(product, 3, 0, 5)
    out, dx, dy, dw = call(device, product, inputs)
    assert out.shape == dx.shape == dy.shape == (8, 0, 5)
    assert dw.shape == inputs[2].shape and not dw.any()


@GPU
@NORMALIZED
def test_more_than_2_to_the_31_elements(normalized):
    skip_without(32)
    x, y, w, dout = drawn("sgp", 3, 3, 513, HALF)
    large = torch.zeros(3, 8, 2**19 + 3, 513, dtype=HALF, device="cuda")
    large[:, :, -3:] = torch.stack((x, y, dout)).cuda()
    leaves = [leaf.requires_grad_() for leaf in (large[0], large[1], w.cuda())]
    out = products.ops.sgp(*leaves, normalized)
    dx, dy, dw = torch.autograd.grad(out, leaves, large[2])
    actual = [*(part[:, -3:].detach().cpu() for part in (out, dx, dy)), dw.cpu()]
    assert_right("sgp", actual, (x, y, w, dout), normalized)


def compilations():
    from clifford import fcgp, fcgp_fused, sgp

    found = {name: kernel for module in (sgp, fcgp, fcgp_fused) for name, kernel in vars(module).items()}
    kernels = [name for name in found if name.endswith("_kernel") and name != "sgp_sums_kernel"]
    return {name: sum(len(cache[0]) for cache in found[name].device_caches.values()) for name in kernels}


@GPU
@DIMENSIONS
def test_a_batch_of_another_size_compiles_nothing(dimensions):
    def run(batch):
        answer("cuda", "sgp", drawn("sgp", dimensions, batch, 64))
        inputs = drawn("fcgp", dimensions, batch, 32)
        fused([t.cuda() for t in inputs])
        for precision in ((), ("tf32x3",)):
            answer("cuda", "fcgp", inputs, True, precision)

    run(4096)
    run(1)  # few rows have programs of another form
    before = compilations()
    for batch in (2, 16, 17, 33, 100, 129, 256, 1024):
        run(batch)
    assert all(before.values()) and compilations() == before


# Of the fully connected product: its parts


def fused(inputs, normalized=True):
    from clifford.fcgp_fused import forward_fused

    return [forward_fused(*inputs[:3], normalized)[0].cpu()]


@pytest.mark.parametrize(
    ("device", "batch", "features", "dtype", "normalized"),
    cases([(3, 70, FLOAT, True), (65, 3, HALF, True)], [(3, 70, BFLOAT, False)]),
)
def test_the_fused_form_computes_the_same(device, batch, features, dtype, normalized, run_on):
    inputs = drawn("fcgp", 3, batch, features, dtype)
    assert_right("fcgp", run_on(device, fused, [t.to(device) for t in inputs], normalized), inputs, normalized)


@GPU
@pytest.mark.parametrize(("batch", "features", "normalized"), [(512, 256, True), (256, 512, False)])
@DIMENSIONS
def test_three_tf32_products_are_nearly_float32_and_one_is_not(dimensions, batch, features, normalized):
    inputs = drawn("fcgp", dimensions, batch, features)
    right = products.by_formulas("fcgp", *(t.double() for t in inputs), normalized)
    off = []
    for precision in ("ieee", "tf32x3", "tf32"):
        found = answer("cuda", "fcgp", inputs, normalized, (precision,))
        off.append([error(mine, exact) for mine, exact in zip(found, right, strict=True)])
    for ieee, three, one in zip(*off, strict=True):
        assert three < 10 * ieee and three < one / 20, off


def error(found, right):
    return float((found.double() - right).norm() / right.norm())


@needs_triton
def test_what_was_set_for_float32_stays_set(monkeypatch):
    from clifford.fcgp import float32_in

    general, matmul = torch.backends, torch.backends.cuda.matmul
    for owner in (general, matmul):
        monkeypatch.setattr(owner, "fp32_precision", "none")  # and put back in the end
    with float32_in("ieee", FLOAT), float32_in("tf32", HALF):
        assert matmul.fp32_precision in ("none", "ieee")
    general.fp32_precision = "tf32"
    with float32_in("tf32", FLOAT):
        assert matmul.fp32_precision == "tf32"
    general.fp32_precision = "ieee"
    assert matmul.fp32_precision == "ieee", "it no longer follows"
    for wanted in ("tf32", "tf32x3"):
        with float32_in(wanted, FLOAT):
            assert matmul.fp32_precision == "tf32"
        assert matmul.fp32_precision == "ieee"


@needs_triton
def test_long_sums_of_split_numbers_are_made_in_parts(monkeypatch):
    from clifford import fcgp as kernels

    monkeypatch.setattr(kernels, "DEPTH", 8)
    (high, low), (large, small) = torch.randn(2, 4, 5, 21), torch.randn(2, 4, 21, 3)
    for add in (False, True):
        out = torch.ones(4, 5, 3)
        kernels.multiply([high, low], [large, small], out, add)
        torch.testing.assert_close(out, add + low @ large + high @ small + high @ large)


def normalizations(source, gradient):
    """By the kernels: what is normalized, and the gradient of the source."""
    from clifford.fcgp import normalize, normalize_backward

    out, root = torch.empty_like(source), source.new_empty(4, source.shape[1])
    normalize(source, out, root, source.shape[1])
    return out.cpu(), normalize_backward(gradient, out, root, source.shape[1]).cpu()


@DEVICES
def test_rows_wider_than_a_block_are_normalized(device, run_on):
    source, gradient = torch.randn(2, 8, 3, 1500)
    out, dsource = run_on(device, normalizations, source.to(device), gradient.to(device))
    leaf = source.double().requires_grad_()
    right = products.reference.normalize(leaf)
    assert error(out, right.detach()) < 1e-6
    assert error(dsource, *torch.autograd.grad(right, leaf, gradient.double())) < 1e-6


def parts(t):
    from clifford.fcgp import split

    return [part.cpu() for part in split(t, 2)]


@DEVICES
def test_a_number_is_the_sum_of_its_tf32_number_and_the_rest(device, run_on):
    t = torch.randn(1100) * torch.logspace(-30, 30, 1100)
    high, low = run_on(device, parts, t.to(device))
    assert torch.equal(high + low, t)
    assert not (high.view(torch.int32) & 0x1FFF).any()  # the 13 bits that TF32 does not have
    assert (low.abs() <= t.abs() * 2**-11).all()
