"""Chapter 4's kernels where no check size and no stress draw is: tiles of other machines, strides, 2^31 elements.

Overflow, NaN, gaps, types, tails and one call after the other are the harness's own (test_pairs.py).

What is expected comes from torch in float64, gradients from its autograd. Without a GPU the kernels run in Triton's
interpreter, whose products of bfloat16 are wrong: those are tested on a GPU.
"""

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import edges
import pytest
import torch
from edges import INF, assert_near, module, run_here, skip_without, transposed_among_others
from torch.nn import functional

from common.pairs.pair import ROOT, TUNED, discover
from common.xray.picture import xray


def right_anywhere(pair):
    """A pair without the lessons that leave special cases to `tuned`."""
    has_tuned = any(version.label == TUNED for version in pair.versions)
    kept = [version for version in pair.versions if not has_tuned or version.label in ("baseline", TUNED)]
    return SimpleNamespace(versions=kept, baseline=pair.baseline)


PAIRS = {pair.name: pair for pair in discover(ROOT / "ch4")}
PRODUCTS = ("matmul", "fused_activation", "tile_size", "split_k", "precision", "batched_matmul")
ATTENTION = ("attention", "attention_backward")
each = partial(edges.each, PAIRS)
on_gpu = partial(each, devices=("cuda",))
anywhere = partial(edges.each, {name: right_anywhere(pair) for name, pair in PAIRS.items()})
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


@anywhere(*PRODUCTS)
def test_no_rows_columns_or_terms(name, version, device, right):
    for m, n, k in ((0, 41, 71), (37, 0, 71), (37, 41, 0)):
        right(version, device, drawn(name, m, n, k))


@anywhere(*PRODUCTS)
def test_transposed_arrays_with_gaps_and_strides_of_0(name, version, device, right):
    """Of the first a descriptor is made as they lie."""
    right(version, device, drawn(name, 24, 40, 72), layout=transposed_among_others)
    row, column = torch.randn(72).half(), torch.randn(40).half()
    right(version, device, multiplied(name, row.expand(24, 72), column.expand(72, 40)))


@anywhere("batched_matmul")
@pytest.mark.parametrize("lengths", [(1, 64, 40), (24, 1, 40), (24, 64, 1)], ids=["row", "k", "column"])
def test_a_length_of_1_may_lie_anywhere(name, version, device, lengths, right):
    """A stride along it says nothing: not in which order the other lengths lie, nor how far products are apart."""
    (m, n, k), products = lengths, 8
    for x in (torch.randn(1, m, k).expand(products, m, k), torch.randn(m, k, products).permute(2, 0, 1)):
        for y in (torch.randn(1, k, n).expand(products, k, n), torch.randn(n, k, products).permute(2, 1, 0)):
            right(version, device, {"x": x.half(), "y": y.half()})


@edges.each(versions_of("batched_matmul", TUNED), "batched_matmul")
@pytest.mark.parametrize(
    ("m", "n", "k", "tile"),
    [
        (131, 264, 72, (128, 256, 64)), (17, 24, 24, (64, 64, 32)), (131, 259, 73, (64, 128, 64)),
        (13, 13, 253, (16, 32, 256)),
    ],
)  # fmt: skip
def test_every_tile_of_products(name, version, device, m, n, k, tile, right, monkeypatch):
    """Also those that are taken where there are many of them."""
    code = module(version.path).batched_pointers
    monkeypatch.setattr(code, "SMS", 1)
    config = code.config_of(3, m, n, k, n % 8 > 0)
    assert tuple(config[block] for block in ("BLOCK_M", "BLOCK_N", "BLOCK_K")) == tile
    inputs = multiplied(name, torch.randn(3, m, k).half(), torch.randn(3, k, n).half())
    right(version, device, inputs, constants=(("batched_pointers.SMS", 1),))


@edges.each(versions_of("batched_matmul", TUNED), "batched_matmul")
@pytest.mark.parametrize(("m", "n", "tile"), [(127, 125, (128, 128)), (61, 60, (64, 64)), (13, 13, (32, 64))])
def test_every_tile_of_three_tf32_products(name, version, device, m, n, tile, right, monkeypatch):
    code = module(version.path).batched_tf32x3
    monkeypatch.setattr(code, "SMS", 1)
    config = code.tile_of(1, m, n)
    assert (config["BLOCK_M"], config["BLOCK_N"]) == tile
    inputs = multiplied(name, torch.randn(1, m, 37), torch.randn(1, 37, n))
    right(version, device, inputs, constants=(("batched_tf32x3.SMS", 1),))


@edges.each(versions_of("batched_matmul", TUNED), "batched_matmul")
@pytest.mark.parametrize(
    ("products", "m", "n", "k", "programs", "tile"),
    [
        (2, 127, 250, 264, 1, (128, 256)), (1, 127, 100, 264, 1, (128, 128)), (2, 131, 72, 264, 2, (128, 128)),
        (2, 33, 63, 264, 1, (64, 64)),
    ],
)  # fmt: skip
def test_every_tile_by_descriptor(name, version, device, products, m, n, k, programs, tile, right, monkeypatch):
    """Also where a product's edges are inside of a block: the next product's numbers, NaN, must not be read."""
    code = module(version.path)
    monkeypatch.setattr(code, "SMS", 1)
    many, config = code.tile_of(products, m, n, k)
    assert (many, (config["BLOCK_M"], config["BLOCK_N"])) == (programs, tile)
    x, y = torch.randn(products, m, k).half(), torch.randn(products, k, n).half()
    x[-1], y[-1] = torch.nan, torch.nan
    right(version, device, {"x": x, "y": y}, constants=(("SMS", 1), ("COPIED_FLOP", 0)))


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("name", "size", "bits"),
    [
        ("batched_matmul", "check/tuned/by8", 128), ("batched_matmul", "check", 0),
        ("batched_matmul", "large/5x835/fp32", 0), ("split_k", "check/tuned/by8", 128),
        ("split_k", "check/tuned/by8/transposed", 128), ("split_k", "check/square", 0),
    ],
)  # fmt: skip
def test_rows_at_multiples_of_16_bytes_are_copied_16_bytes_at_a_time(name, size, bits):
    """Rows that begin anywhere need no address of 64 bits for each element: with these, kernels spilled registers."""
    (version,) = [each for each in PAIRS[name].variants if each.label == TUNED]
    *_, picture = xray(replace(PAIRS[name], variants=[version]), ["sm_90"], size)
    kernel = picture.kernels[0]
    assert (kernel.widest("copies to shared memory"), kernel.spills) == (bits, 0)


@on_gpu("matmul", "fused_activation")
@pytest.mark.parametrize(("m", "n", "k"), [(70, 8449, 600), (70, 12_673, 330), (3097, 4607, 333), (190, 24_001, 330)])
def test_tiles_that_programs_share(name, version, device, m, n, k, right):
    """One after 132 whole tiles of 128 x 64; all, of 128 x 256; the last 54 of 450 (of 132 programs); 192 x 256."""
    right(version, device, drawn(name, m, n, k))


# Products of huge numbers


# One call and the next


# Attention


@each(*ATTENTION)
@pytest.mark.parametrize("causal", [True, False])
def test_lengths_and_head_dimensions(name, version, device, causal, right):
    """At and just above those of blocks; other dimensions are filled up, and 67 is two blocks of 64."""
    for n, d in ((64, 16), (65, 64), *(((37, 1), (67, 136)) if causal else ((37, 80),))):
        if d > 128 and version.label not in ("baseline", TUNED):
            continue  # lessons have no room for them
        right(version, device, asked(name, n, d, causal, heads=2 if n != 37 else 1))


@each(*ATTENTION)
@pytest.mark.parametrize("shape", [(1, 2, 0, 16), (1, 0, 33, 16), (0, 2, 33, 16)])
def test_no_head_or_no_key(name, version, device, shape, right):
    """Of nothing no descriptor can be made: `tuned` makes none then."""
    if version.label.rpartition("/")[2] in ("tma", "overlapped", "gluon"):
        pytest.skip("a lesson, with descriptors")
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
