"""Chapter 4's kernels where no check size and no stress draw is: every tile, layouts, huge sums, 2^31 elements.

What is expected comes from torch in float64, gradients from its autograd. Without a GPU the kernels run in Triton's
interpreter, whose products of bfloat16 are wrong: those are tested on a GPU.
"""

from functools import partial
from importlib.util import find_spec
from itertools import product
from types import SimpleNamespace

import edges
import pytest
import torch
from edges import INF, LAYOUTS, NAN, assert_near, module, run_here, skip_without
from torch.nn import functional

from common.pairs.pair import ROOT, discover
from common.xray.picture import xray

PAIRS = {pair.name: pair for pair in discover(ROOT / "ch4")}
PRODUCTS = ("matmul", "fused_activation", "tile_size", "split_k", "precision", "batched_matmul")
ATTENTION = ("attention", "attention_backward")
ACTIVATIONS = ("leaky_relu", "relu", "gelu", "silu")
TILES = [f"{m}x{n}" for m, n in product((64, 128, 256), repeat=2)]

each = partial(edges.each, PAIRS)
on_gpu = partial(each, devices=("cuda",))
large = pytest.mark.xdist_group("large")  # with pytest -n, one of these at a time: each fills a part of the GPU
pytestmark = [
    pytest.mark.rest,  # kernels at their edges, in the interpreter
    pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton"),
]


def versions_of(name, *labels):
    """A pair with these versions only."""
    versions = [version for version in PAIRS[name].versions if version.label in labels]
    return {name: SimpleNamespace(versions=versions, baseline=PAIRS[name].baseline)}


@pytest.fixture(autouse=True)
def _no_newer_gpu_needed(request):
    version, device = (request.node.callspec.params.get(name) for name in ("version", "device"))
    if device == "cuda" and (needed := version.capability_needed(torch.cuda.get_device_capability())):
        pytest.skip(needed)


# What is asked and what is right


def multiplied(name, a, b, **more):
    """The inputs of a pair for a @ b."""
    names = {"split_k": ("x", "w_b"), "precision": ("x", "w_b"), "batched_matmul": ("x", "y")}.get(name, ("a", "b"))
    fixed = {"fused_activation": {"activation": "leaky_relu"}, "tile_size": {"tile": "64x128"}}.get(name, {})
    if name == "batched_matmul":
        a, b = (x if x.dim() == 3 else torch.stack((x, x.flip(0))) for x in (a, b))
    return {**dict(zip(names, (a, b), strict=True)), **fixed, **more}


def drawn(name, m, n, k, dtype=torch.float16, **more):
    return multiplied(name, torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), **more)


def asked(name, n, d, causal, dtype=torch.float16, heads=3):
    """A forward pass is given no gradient."""
    given = ("q", "k", "v", "do") if name == "attention_backward" else ("q", "k", "v")
    return {**{key: torch.randn(1, heads, n, d).to(dtype) for key in given}, "causal": causal}


def expected(inputs):
    """[answer] in float64, NaN and infinite as torch has it."""
    if "q" in inputs:
        return attended(**inputs)
    a, b = (x.double() for x in inputs.values() if isinstance(x, torch.Tensor))
    y = a @ b
    return [getattr(functional, inputs["activation"])(y) if "activation" in inputs else y]


def attended(q, k, v, causal, do=None):
    """[o] or [dq, dk, dv]."""
    q, k, v = leaves = [x.double().requires_grad_() for x in (q, k, v)]
    scores = q @ k.mT / q.shape[3] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -INF)
    o = torch.softmax(scores, -1) @ v
    return [o.detach()] if do is None else list(torch.autograd.grad(o, leaves, do.double()))


def assert_right(version, inputs, actual, times=1.0):
    """Near what is expected; a product also contiguous."""
    wanted = expected(inputs)
    if "q" not in inputs and "PRECISION" not in version.constants:
        assert_near(actual, wanted)
    for mine, true in zip(actual, wanted, strict=True):
        assert "q" in inputs or mine.is_contiguous()
        if "q" in inputs:  # by the RMS of all: 16-bit weights and their products are rounded on the way
            near = times * {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 6e-2}[mine.dtype]
            rms = max(true[true.isfinite()].square().mean().sqrt().item() if true.isfinite().any() else 0.0, 0.1)
            torch.testing.assert_close(mine.double(), true, rtol=near, atol=near * rms, equal_nan=True)
        elif "PRECISION" in version.constants:  # where so many terms are added up in 16 bits, each rounding counts
            terms = inputs["x"].shape[-1]
            off = 2 * 2**-10 * (terms / 32 + 1) ** 0.5 * terms**0.5  # ten times what the docstring expects, by the RMS
            torch.testing.assert_close(mine.double(), true.half().double(), rtol=2e-3, atol=off, equal_nan=True)


@pytest.fixture
def right(call):
    """right(version, device, inputs, ...): what `call` returns, if that is right."""

    def answer(version, device, inputs, near=1.0, **how):
        actual = call(version, device, inputs, **how)
        assert_right(version, inputs, actual, near)
        return actual

    return answer


# Products: sizes, layouts, types


@each(*PRODUCTS)
def test_sizes_0_1_and_prime(name, version, device, right):
    for m, n, k in product((0, 1, 37), (0, 1, 41), (0, 1, 71)):
        right(version, device, drawn(name, m, n, k))


@each("batched_matmul")
@pytest.mark.parametrize("lengths", [(1, 64, 40), (24, 1, 40), (24, 64, 1)], ids=["row", "k", "column"])
def test_a_length_of_1_may_lie_anywhere(name, version, device, lengths, right):
    """A stride along it says nothing: not in which order the other lengths lie, nor how far products are apart."""
    (m, n, k), products = lengths, 8
    for x in (torch.randn(1, m, k).expand(products, m, k), torch.randn(m, k, products).permute(2, 0, 1)):
        for y in (torch.randn(1, k, n).expand(products, k, n), torch.randn(n, k, products).permute(2, 1, 0)):
            right(version, device, {"x": x.half(), "y": y.half()})


@edges.each(versions_of("batched_matmul", "baseline", "optimized"), "batched_matmul")
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "tile"),
    [
        (131, 264, 72, torch.float16, (128, 256, 64)), (17, 24, 24, torch.float16, (64, 64, 32)),
        (131, 259, 73, torch.float16, (64, 128, 64)), (13, 13, 273, torch.float16, (16, 32, 256)),
        (131, 68, 72, torch.float32, (64, 64, 16)), (13, 13, 73, torch.float32, (32, 32, 32)),
    ],
)  # fmt: skip
def test_every_tile_of_products(name, version, device, m, n, k, dtype, tile, right, monkeypatch):
    """Also those that are taken where there are many of them."""
    code = module(version.path)
    monkeypatch.setattr(code, "SMS", 1)
    config = code.config_of(3, m, n, k, dtype, n % (16 // dtype.itemsize) > 0)
    assert tuple(config[block] for block in ("BLOCK_M", "BLOCK_N", "BLOCK_K")) == tile
    inputs = multiplied(name, torch.randn(3, m, k).to(dtype), torch.randn(3, k, n).to(dtype))
    right(version, device, inputs, constants=(("SMS", 1),))


@edges.each(versions_of("batched_matmul", "optimized/tma"), "batched_matmul")
@pytest.mark.parametrize(
    ("products", "m", "n", "k", "dtype", "programs", "tile"),
    [
        (2, 127, 250, 200, torch.float16, 1, (128, 256)), (1, 127, 100, 72, torch.float16, 1, (128, 128)),
        (2, 131, 72, 72, torch.float16, 2, (128, 128)), (2, 33, 63, 200, torch.float16, 1, (64, 64)),
        (2, 67, 65, 33, torch.float32, 2, (64, 64)),
    ],
)  # fmt: skip
def test_every_tile_by_descriptor(name, version, device, products, m, n, k, dtype, programs, tile, right, monkeypatch):
    """Also where a product's edges are inside of a block: the next product's numbers, NaN, must not be read."""
    code = module(version.path)
    monkeypatch.setattr(code, "SMS", 1)
    many, config = code.tile_of(products, m, n, k, dtype.itemsize)
    assert (many, (config["BLOCK_M"], config["BLOCK_N"])) == (programs, tile)
    x, y = torch.randn(products, m, k).to(dtype), torch.randn(products, k, n).to(dtype)
    x[-1], y[-1] = torch.nan, torch.nan
    right(version, device, {"x": x, "y": y}, constants=(("SMS", 1),))


@pytest.mark.parametrize(
    ("name", "size", "bits"),
    [
        ("batched_matmul", "check/by8", 128), ("batched_matmul", "check/by4/fp32", 128), ("batched_matmul", "check", 0),
        ("split_k", "check/by8", 128), ("split_k", "check/by8/transposed", 128), ("split_k", "check", 0),
    ],
)  # fmt: skip
def test_rows_at_multiples_of_16_bytes_are_copied_16_bytes_at_a_time(name, size, bits):
    (pair,) = discover(ROOT / "ch4", name)
    found = {picture.label: picture.kernels[0] for picture in xray(pair, ["sm_90"], size)}
    for label in ("optimized/tf32x3", "optimized/tma"):  # copies through registers, and by descriptor
        found.pop(label, None)
    widths = {label: kernel.widest("copies to shared memory") for label, kernel in found.items()}
    assert widths == dict.fromkeys(found, bits)


@pytest.mark.parametrize(
    ("name", "size"),
    [("batched_matmul", "check"), ("batched_matmul", "large/5x835/fp32"), ("split_k", "check/square")],
)
def test_rows_that_begin_anywhere_need_no_address_for_each_element(name, size):
    """With 64 bits for each, these kernels had too few registers."""
    (pair,) = discover(ROOT / "ch4", name)
    found = {picture.label: picture.kernels[0].spills for picture in xray(pair, ["sm_90"], size)}
    assert (found["optimized"], found.get("optimized/tf32x3", 0)) == (0, 0)


@each("tile_size")
def test_every_tile(name, version, device, right):
    """The baseline has one."""
    for tile in TILES if version.label == "optimized" else TILES[:1]:
        right(version, device, drawn(name, 67, 131, 73, tile=tile))


@each(*PRODUCTS)
def test_layouts(name, version, device, right):
    """Also those of which a descriptor is made as they lie, with n and k multiples of 8; and strides of 0."""
    for i, layout in enumerate(LAYOUTS):
        inputs = drawn(name, 24, 40, 72)
        first, second = (key for key, value in inputs.items() if isinstance(value, torch.Tensor))
        right(version, device, inputs, layout={first: layout, second: list(LAYOUTS)[i - 3]})
    row, column = torch.randn(72).half(), torch.randn(40).half()
    right(version, device, multiplied(name, row.expand(24, 72), column.expand(72, 40)))


@on_gpu("matmul", "fused_activation")
@pytest.mark.parametrize(("m", "n", "k"), [(70, 8449, 600), (70, 12_673, 330), (3097, 4607, 333), (190, 24_001, 330)])
def test_tiles_that_programs_share(name, version, device, m, n, k, right):
    """One after 132 whole tiles of 128 x 64; all, of 128 x 256; the last 54 of 450 (of 132 programs); 192 x 256."""
    right(version, device, drawn(name, m, n, k))


# Products of huge numbers


@each(*PRODUCTS)
def test_sums_that_16_bits_cannot_hold(name, version, device, call):
    """Infinite from 65,520 on, which would be rounded to 65,536; below, the largest number that there is."""
    a = torch.tensor([[65_504.0, 15], [65_504, 16], [300, 0], [-65_504, -16], [0, 1]]).half()
    inputs = multiplied(name, a, torch.tensor([[1.0, 1, 300], [1, 0, 1]]).half())
    if "activation" in inputs:
        inputs["activation"] = "relu"  # the same of what is infinite already and of what is not yet
    (actual,), (true,) = call(version, device, inputs), expected(inputs)
    torch.testing.assert_close(actual, true.half(), rtol=1e-3, atol=0)
    assert actual.flatten()[0] == 65_504
    assert actual.isinf().any()


@each("fused_activation")
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_special_numbers(name, version, device, activation, call):
    """Of products of each two. The baseline's, rounded before they are activated, may be infinite before: then NaN."""
    numbers = [NAN, INF, 0.0, 1e-7, 1e-4, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 12.0, 30.0, 300.0, 60_000.0]
    x = torch.tensor(numbers + [-number for number in numbers]).half().repeat(2)  # Gluon's multiplies 64 rows at least
    inputs = multiplied(name, x[:, None], x[None], activation=activation)
    (actual,), (true,) = call(version, device, inputs), expected(inputs)
    if not version.has_kernel:
        actual, true = (torch.where((x[:, None].double() * x).abs() > 65_504, 0.0, y) for y in (actual, true))
    torch.testing.assert_close(actual, true.half(), rtol=2e-3, atol=1e-4, equal_nan=True)


# One call and the next


@each(*PRODUCTS)
def test_a_call_leaves_nothing_to_the_next(name, version, device, run_on):
    """Of the same set-up: other numbers, another shape, the first again; what was returned stays what it was."""
    k = 517 if name == "split_k" else 129  # in several parts
    rounds = [drawn(name, *shape) for shape in ((5, 131, k), (5, 131, k), (3, 67, 129), (17, 65, 200))]
    rounds.append(rounds[0])
    for inputs, actual in zip(rounds, run_on(device, in_turn, version.path, device, rounds), strict=True):
        assert_right(version, inputs, [actual])


def in_turn(path, device, rounds):
    """The answers to all of these, after one `setup`, copied when all have been given."""
    version, answers = module(path), []
    rounds = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in each.items()} for each in rounds]
    state = version.setup(**rounds[0]) if hasattr(version, "setup") else {}
    for inputs in rounds:
        answers.append(version.run(**inputs, **state))
        assert not state.get("arrived", torch.zeros(1)).any()  # `last` counts programs, from 0 in every call
    return [each.cpu() for each in answers]


# Attention


@each(*ATTENTION)
@pytest.mark.parametrize("causal", [True, False])
def test_lengths_and_head_dimensions(name, version, device, causal, right):
    """Below, at and above those of blocks; of n = 1 all weight is on one value. Other dimensions are filled up."""
    filled = ((37, 1), (37, 3), (37, 16), (37, 128), (67, 136)) if causal else ((37, 80),)  # 67: two blocks of 64
    for n, d in ((1, 64), (2, 16), (63, 16), (64, 16), (65, 64), (131, 16), *filled):
        right(version, device, asked(name, n, d, causal, heads=2 if n != 37 else 1))


@each(*ATTENTION)
@pytest.mark.parametrize("shape", [(1, 2, 0, 16), (1, 0, 33, 16), (0, 2, 33, 16)])
def test_no_head_or_no_key(name, version, device, shape, right):
    inputs = {key: torch.empty(shape, dtype=torch.float16) for key in asked(name, 1, 16, True) if key != "causal"}
    right(version, device, {**inputs, "causal": True})


# More than 2^31 elements


@large
@on_gpu(*PRODUCTS)
def test_an_answer_of_more_than_2_to_the_31(name, version, device):
    skip_without(30)
    m, n, k = 2**16 + 3, 2**15 + 9, 8
    a, b = torch.zeros(m, k, dtype=torch.float16), torch.randn(k, n).half()
    a[-3:] = torch.randn(3, k)
    true = a[-3:].double() @ b.double()
    if name == "batched_matmul":
        a, b = a[-128:].expand(2**9 + 3, 128, k), b.expand(2**9 + 3, k, n)
    (c,) = run_here(version, multiplied(name, a.to(device), b.to(device)))
    assert c.numel() > 2**31
    true = functional.leaky_relu(true) if name == "fused_activation" else true
    torch.testing.assert_close(c.flatten(0, -2)[-3:].cpu().double(), true, rtol=4e-3, atol=4e-3)


@large
@on_gpu("matmul", "fused_activation", "tile_size", "split_k", "precision")
@pytest.mark.parametrize("is_transposed", [False, True])
def test_operands_whose_rows_lie_far_apart(name, version, device, is_transposed):
    """Few elements, more than 2^31 from the first to the last: what a stride times a row, or a column, comes to."""
    skip_without(12)
    far = torch.empty(2**16 + 8, 2**15 + 8, dtype=torch.float16, device=device)
    a, b = far[:, 8:24].normal_(), torch.randn(16, 40, device=device).half()
    inputs = multiplied(name, *((b.T, a.T) if is_transposed else (a, b)))
    assert_right(version, inputs, run_here(version, inputs))


@large
@on_gpu("split_k", "matmul", "precision")
def test_a_sum_along_rows_that_lie_far_apart(name, version, device):
    """k times b's stride exceeds 2^31; of whole numbers, whose sum is exact."""
    skip_without(12)
    far = torch.empty(2**16 + 8, 2**15 + 8, dtype=torch.float16, device=device)
    b = far[:, 8:24].random_(-1, 2)
    a = torch.zeros(3, len(b), dtype=torch.float16, device=device)
    a[:, :5], a[:, -5:] = 1, 2
    inputs = multiplied(name, a, b)
    assert torch.equal(run_here(version, inputs)[0].double(), expected(inputs)[0])


@large
@on_gpu(*ATTENTION)
def test_heads_of_more_than_2_to_the_31(name, version, device):
    if not version.has_kernel:
        pytest.skip("keeps all scores")
    skip_without(60)
    last = asked(name, 1025, 64, True, heads=1)
    inputs = dict(last)
    for key in last.keys() - {"causal"}:
        inputs[key] = torch.zeros(1, 2**15 + 3, 1025, 64, dtype=torch.float16, device=device)
        inputs[key][:, -1:] = last[key]
    assert_right(version, last, [part[:, -1:].cpu() for part in run_here(version, inputs)])
