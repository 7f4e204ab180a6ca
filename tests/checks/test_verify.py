"""Wrong answers are rejected, each for its own reason; honest ones of every kind pass."""

import random

import numpy as np
import pytest
import torch
from samples import in_words

from common.checks import compare_to_baseline, compare_to_reference, stress
from common.checks.arrays import (
    copy_into,
    difference,
    map_arrays,
    overlap_path,
    overwrite_slice,
    same_placement,
    tensors,
    to_float64,
    with_values,
)
from common.checks.guards import changed_input
from common.pairs.contract import DRAWS

compare, near = in_words(compare_to_reference.compare), in_words(compare_to_baseline.compare_elements)
N = 40_001


def test_the_draws_that_a_file_may_leave_out_are_those_that_there_are():
    draws = {*stress.STRIDES, *stress.LAYOUTS, *stress.FLOATS, *stress.INTEGERS}
    assert {*draws, stress.OFFSETS} == {*DRAWS}


SIZES = [1, 127, 129, N]


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def tf32(x):
    """Rounded to the 10 bits of TF32's mantissa."""
    return ((x.view(torch.int32) + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)


# Honest answers: (out, oracle, baseline's answer)


def elementwise(n):
    x = draw(n)
    return 2 * x + 1, 2 * x.double() + 1, torch.add(x, x) + 1


def softmax(n):
    x = 5 * draw(7, n)
    return torch.exp(x - x.logsumexp(1, True)), x.double().softmax(1), x.softmax(1)


def product(n):
    a, b = draw(33, n), draw(n, 65, seed=1)
    chunks = sum(a[:, i : i + 16] @ b[i : i + 16] for i in range(0, n, 16))  # another order of summation
    return chunks, a.double() @ b.double(), a @ b


def total(n):
    x = draw(9, n)  # zero mean: most of it cancels
    return x.flip(1).cumsum(1)[:, -1], x.double().sum(1), x.sum(1)


def mean_and_variance(n):
    x = draw(5, n) + 3  # the second formula loses a digit to cancellation, as many a one-pass kernel does
    out = [x.mean(1), x.square().mean(1) - x.mean(1).square()]
    return out, [x.double().mean(1), x.double().var(1, False)], [x.mean(1), x.var(1, False)]


@pytest.mark.parametrize("n", [1, 127, 129, 4001])
@pytest.mark.parametrize("problem", [elementwise, softmax, product, total, mean_and_variance])
def test_an_honest_answer_passes(problem, n):
    out, oracle, base = problem(n)
    assert compare(out, oracle, base) == compare(base, oracle, base) == ""
    assert compare(out, base) == ""  # arm against arm, as in a timed round


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_every_floating_dtype_is_judged_at_its_own_precision(dtype):
    a, b = draw(64, 200, dtype=dtype), draw(200, 64, seed=1, dtype=dtype)
    oracle = a.double() @ b.double()
    chunks = (a[:, :100].float() @ b[:100].float() + a[:, 100:].float() @ b[100:].float()).to(dtype)
    out = a[:, :100] @ b[:100] + a[:, 100:] @ b[100:] if dtype == torch.float64 else chunks
    for factor in (1, 0, 1.5):
        assert (compare(factor * out, oracle, a @ b) == "") is (factor == 1)


def test_numpy_arrays_pass_as_tensors_do():
    x = draw(N).numpy()
    for factor, said in ((2, ""), (0, "element ")):
        assert compare(factor * x, 2 * x.astype(np.float64), x + x)[:8] == said


def test_a_view_with_strides_of_its_own_passes():
    x = draw(31, 65)
    assert compare(x.T, x.double().T.contiguous(), x.T.contiguous()) == ""


# Wrong answers


def swapped(x):
    return torch.cat([x[-1:], x[1:-1], x[:1]])


def with_value(x, at, value):
    x = x.clone()
    x.reshape(-1)[at] = value
    return x


WRONG = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "a constant": lambda x: torch.full_like(x, float(x.mean())),
    "the wrong sign": lambda x: -x,
    "twice": lambda x: 2 * x,
    "one percent off": lambda x: 1.01 * x,
    "shifted": lambda x: x + 0.01,
    "swapped ends": swapped,
    "reversed": lambda x: x.flip(0),
    "rolled by one": lambda x: x.roll(1),
    "the last value": lambda x: with_value(x, -1, 0),
    "the first value": lambda x: with_value(x, 0, 0),
    "bfloat16 inside": lambda x: x.bfloat16().float(),
    "float16 inside": lambda x: x.half().float(),
    "tf32 inside": tf32,
    "NaN": lambda x: with_value(x, x.numel() // 2, float("nan")),
    "inf": lambda x: with_value(x, x.numel() // 2, float("inf")),
    "a small bias everywhere": lambda x: x * (1 + 3e-5),
}


NEEDS_TWO = ("a constant", "swapped ends", "reversed", "rolled by one")  # right for a single value


@pytest.mark.parametrize(("how", "n"), [(how, n) for how in WRONG for n in SIZES if n > 1 or how not in NEEDS_TWO])
def test_a_wrong_answer_is_rejected_at_every_size(how, n):
    x = draw(n).abs() + 0.5 + draw(n, seed=1).abs()
    assert compare(3 * x, 3 * x.double(), x + x + x) == ""
    assert compare(WRONG[how](3 * x), 3 * x.double(), x + x + x) != ""


def test_a_tail_of_lower_precision_shows_in_its_chunk():
    x = draw(1 << 20)
    out, oracle = x * 1.1, x.double() * 1.1
    assert compare(out, oracle, oracle.float()) == ""
    out[-(1 << 14) :] *= 1 + 5e-6  # a 64th of the array, far inside the tolerance of an element
    said = compare(out, oracle, oracle.float())
    assert "RMS error" in said and "chunk 64 of 64" in said


def test_a_half_of_lower_precision_shows_in_one_of_many_arrays():
    xs = [draw(1 << 12, seed=seed) for seed in range(200)]
    out, oracle = [x * 1.1 for x in xs], [x.double() * 1.1 for x in xs]
    assert compare(out, oracle, [x.float() for x in oracle]) == ""
    out[123][1 << 11 :] *= 1 + 5e-6
    said = compare(out, oracle, [x.float() for x in oracle])
    assert said.startswith("[123]: ") and "chunk 2 of 2" in said


@pytest.mark.parametrize("how", WRONG)
def test_one_wrong_array_of_hundreds_is_named_with_the_reason_that_it_has_alone(how):
    xs = [draw(300 + seed % 3, seed=seed) + 2 for seed in range(200)]
    out, oracle, base = [x * 1.1 for x in xs], [x.double() * 1.1 for x in xs], [x * 1.1 for x in xs]
    for check, model in ((compare, oracle), (near, base)):
        more = (base,) if check is compare else ()
        assert check(out, model, *more) == ""
        wrong = [*out[:123], WRONG[how](out[123]), *out[124:]]
        alone = check(wrong[123:124], model[123:124], *(each[123:124] for each in more))
        assert check(wrong, model, *more) == alone.replace("[0]", "[123]")
        assert alone or check is near  # which leaves the lower precision of single elements to `drift`


def test_the_distance_and_the_change_of_one_array_of_hundreds_are_its_own():
    base = [draw(300 + seed % 3, seed=seed) for seed in range(200)]
    out = [x.clone() for x in base]
    assert changed_input(out, base) == ""
    out[123] *= 1 + 1e-3
    assert changed_input(out, base) == "[123]"
    errors = compare_to_baseline.reference_errors(out, base)
    (alone,) = compare_to_baseline.reference_errors(out[123], base[123]).values()
    assert alone.rms == pytest.approx(1e-3, rel=1e-3)
    assert errors.pop("[123]") == pytest.approx(alone)
    assert {*errors.values()} == {compare_to_baseline.Error()}


def test_the_reason_names_element_values_and_place():
    x = torch.ones(300)
    out = with_value(x, 270, 7)
    assert compare(out, x.double(), x) == "element 270 of 300 is 7, expected 1"
    right = {"a": x, "b": [x, x]}
    assert compare({"a": x, "b": [x, out]}, right, right).startswith("b[1]: element 270")


# Precision and tolerance


def test_tf32_passes_only_where_it_is_declared():
    a, b = draw(64, 256), draw(256, 64, seed=1)
    out, oracle = tf32(a) @ tf32(b), a.double() @ b.double()
    assert compare(out, oracle, a @ b) != ""
    assert compare(out, oracle, a @ b, precision="tf32") == ""
    assert compare(tf32(a)[:, :255] @ tf32(b)[:255], oracle, a @ b, precision="tf32") != ""  # another problem
    assert compare(0 * out, oracle, a @ b, precision="tf32") != ""


@pytest.mark.parametrize("precision", ["", "fp16", "fp8"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.bool])
def test_integers_are_equal_or_wrong_at_any_precision(dtype, precision):
    x = torch.ones(300, dtype=dtype)
    other = x.clone()
    other[7] = 0
    assert compare(x, x.clone(), x, precision=precision) == ""
    assert compare(other, x, x, precision=precision) == "1 of 300 values differ"


@pytest.mark.parametrize("precision", ["", "fp64", "tf32", "bf16", "fp8"])
def test_no_precision_lets_zeros_or_twice_the_answer_pass(precision):
    x = draw(N)
    for wrong in (torch.zeros_like(x), 2 * x, -x, x.roll(1)):
        assert compare(wrong, x.double(), x, precision=precision) != ""


def test_a_custom_tolerance_is_looser_and_not_blind():
    x, loose = draw(N), (1e-1, 1e-1)
    spiky = with_value(x, 5, float(x[5]) + 0.01)  # both versions are off where the sum cancels
    assert "element 5" in compare(spiky, x.double(), spiky)
    assert compare(spiky, x.double(), spiky, custom=loose) == "" != compare(0 * x, x.double(), spiky, custom=loose)


# NaN and inf

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("out", "oracle", "is_right"),
    [
        ([1, NAN, 3], [1, NAN, 3], True), ([1, INF, 3], [1, INF, 3], True), ([1, -INF, 3], [1, -INF, 3], True),
        ([1, 2, 3], [1, NAN, 3], False), ([1, NAN, 3], [1, 2, 3], False), ([1, INF, 3], [1, -INF, 3], False),
        ([1, INF, 3], [1, NAN, 3], False), ([1, NAN, 3], [1, INF, 3], False), ([1, 0, 3], [1, INF, 3], False),
        ([1, NAN, 9], [1, NAN, 3], False),  # the rest is still compared
        ([NAN, NAN, NAN], [1, 2, 3], False),
    ],
)  # fmt: skip
def test_nan_and_inf_stand_where_the_oracle_has_them(out, oracle, is_right):
    out, oracle = torch.tensor(out), torch.tensor(oracle, dtype=torch.float64)
    assert (compare(out, oracle, out) == "") is is_right
    assert (compare(out, oracle) == "") is is_right or out.dtype != oracle.dtype


def test_what_the_dtype_cannot_hold_is_infinite():
    x = torch.tensor([1.0, 60000.0, -60000.0], dtype=torch.float16)
    assert compare(x + x, 2 * x.double(), 2 * x) == ""
    assert compare(torch.tensor([2.0, 65504.0, -65504.0], dtype=torch.float16), 2 * x.double(), 2 * x) != ""


# Shapes, dtypes, kinds

X, Y, ONES, WHOLE = draw(6, 1), draw(6, 1, seed=1), torch.ones(3), torch.arange(N)
BIG, EMPTY, NOUGHT = torch.tensor([2**53 + 1, 2**62]), torch.empty(0, 4), torch.zeros(N)
SHAPES = (X.reshape(6), X.reshape(1, 6), X.expand(6, 6), X[:1], X.reshape(6, 1, 1), X.sum())  # broadcasting forgives
KINDS = (None, 3.0, "answer", print, [], {}, [ONES] * 2, {"y": ONES}, [[ONES]], np.ones(3, np.float32))
DTYPES = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool)
FORMS = [  # an answer, the baseline's, what is said of it
    *((wrong, X, "shape ") for wrong in SHAPES),
    *((wrong, ONES, "") for wrong in KINDS),
    *((ONES.to(dtype), ONES, "dtype ") for dtype in DTYPES),
    *((with_value(WHOLE % 200, 7, 8).to(dtype), (WHOLE % 200).to(dtype), f"1 of {N} values differ")
      for dtype in (torch.uint8, torch.int32, torch.int64)),
    (BIG - 1, BIG, "2 of 2 values differ"),  # beyond a float's mantissa
    (WHOLE % 2 > 0, WHOLE % 2 < 1, f"{N} of {N} values differ"),
    (torch.empty(4, 0), EMPTY, "shape "), (EMPTY.int(), EMPTY, "dtype "),
    (with_value(NOUGHT, 9, 1e-30), NOUGHT, "element 9"),
    (torch.tensor(3.01), torch.tensor(3.0), "element 0"),
    ((Y, X), [X, Y], "[0]: "), ({"a": X}, {"a": X, "b": Y}, "returns 1 value(s), expected 2"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "base", "said"), FORMS)
def test_another_form_or_value_is_rejected(wrong, base, said):
    found = compare(wrong, to_float64(base), base)
    assert found.startswith(said) and found
    assert compare(map_arrays(torch.clone, base), to_float64(base), base) == ""


def test_lists_tuples_and_dicts_are_compared_by_place():
    assert compare((X, Y), [X.double(), Y.double()], [X, Y]) == ""
    assert compare({"a": X, "b": Y}, {"b": Y.double(), "a": X.double()}, {"a": X, "b": Y}) == ""


def test_an_answer_on_another_device_is_rejected():
    for judged in (compare(X.to("meta"), X.double(), X), near(X.to("meta"), X)):
        assert judged == "on meta, the baseline's is on cpu"


# What inputs may not differ in, and how they are renewed


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"x": torch.zeros(3, 4), "n": 2}, ""),  # values are copied from the baseline's
        ({"x": torch.zeros(4, 3).T, "n": 2}, ""),  # strides are placement
        ({"x": torch.zeros(4, 3), "n": 2}, "x is torch.float32 [4, 3] instead of torch.float32 [3, 4]"),
        ({"x": torch.zeros(3, 4).half(), "n": 2}, "x is torch.float16 [3, 4] instead of torch.float32 [3, 4]"),
        ({"x": torch.zeros(3, 4), "n": 3}, "n is 3 instead of 2"),
        ({"x": torch.zeros(3, 4)}, "has x instead of n, x"),
        ({"x": [torch.zeros(3, 4)], "n": 2}, "has n, x[0] instead of n, x"),
        ({"x": 1.0, "n": 2}, "x is 1.0 instead of tensor"),
    ],
)
def test_inputs_may_differ_in_placement_only(other, expected):
    found = difference({"x": torch.ones(3, 4), "n": 2}, other)
    assert found.startswith(expected) and bool(found) is bool(expected)


def test_placement_is_kind_and_strides():
    x = torch.ones(3, 4)
    others = [2 * x, torch.ones(4, 3).T, np.ones((3, 4), np.float32)]
    assert [same_placement({"x": x, "n": 1}, {"x": other, "n": 1}) for other in others] == [True, False, False]


def test_values_are_copied_across_strides_and_kinds():
    x, strided, array = draw(3, 4), torch.zeros(4, 3).T, np.zeros((3, 4), np.float32)
    copy_into([strided, array], [x, x])
    assert torch.equal(strided, x) and np.array_equal(array, x.numpy())


@pytest.mark.parametrize(
    ("mine", "other", "shared"),
    [
        ([(0, 4)], [(4, 8)], ""),
        ([(0, 5)], [(4, 8)], "[0]"),
        ([(4, 8)], [(0, 5)], "[0]"),
        ([(0, 9), (1, 2)], [(8, 9)], "[0]"),  # the one that begins last has ended before
        ([(8, 9)], [(0, 9), (1, 2)], "[0]"),
        ([(3, 3), (2, 4)], [(0, 2), (4, 6), (5, 5)], ""),  # empty ones share nothing
    ],
)
def test_memory_that_two_trees_share_is_found(mine, other, shared):
    x = torch.zeros(10)
    assert overlap_path([x[a:b] for a, b in mine], [x[a:b] for a, b in other]) == shared


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (64, 3), (3, 64), (1, 1, 1)])
def test_every_target_gets_the_same_new_part(shape):
    source, before = draw(*shape, seed=1), draw(*shape)
    targets = [before.clone(), before.mT.contiguous().mT if len(shape) == 2 else before.clone()]
    for target in targets:
        overwrite_slice({"x": target}, {"x": source}, random.Random(0))
    assert torch.equal(*targets)
    new = targets[0] == source
    assert new.any() and (new.all() or max(shape) > 1)
    assert torch.equal(targets[0][~new], before[~new])


def test_over_many_rounds_every_part_is_renewed():
    x, rng = torch.zeros(1000), random.Random(0)
    for _ in range(100):
        overwrite_slice([x], [torch.ones(1000)], rng)
    assert x.mean() > 0.99


def test_values_go_into_the_arrays_that_there_are():
    x, index, longer = torch.zeros(3), torch.zeros(9, dtype=torch.int64), torch.ones(5)
    target = {"x": x, "parts": [index, 1, "a"], "ragged": torch.zeros(4), "k": 0.5}
    source = {"x": torch.ones(3), "parts": [torch.arange(9), 2, "b"], "ragged": longer, "k": 0.25}
    filled = with_values(target, source)
    assert filled["x"] is x and filled["parts"][0] is index
    assert (x.tolist(), index.tolist()) == ([1] * 3, list(range(9)))
    assert (filled["parts"][1:], filled["k"]) == ([2, "b"], 0.25)
    assert filled["ragged"] is not longer and filled["ragged"].equal(longer)  # its length is drawn, too


@pytest.mark.parametrize("draw", [*stress.STRIDES, *stress.LAYOUTS])
def test_a_layout_has_the_same_values(draw):
    tree = {"v": torch.randn(5), "m": torch.randn(4, 6), "t": torch.randn(2, 3, 5), "a": np.arange(6.0).reshape(2, 3)}
    stress.repeat_first(tree)  # as expanded arrays have it
    other = stress.change_layout(draw, tree)
    assert all(x.equal(dict(tensors(tree))[path]) for path, x in tensors(other))
    changed = {name for name in tree if other[name] is not tree[name]}
    least = stress.LAYOUTS.get(draw, 1)
    assert changed == {name for name, x in tree.items() if x.ndim >= least} - (
        {"a"} if draw == stress.EXPANDED else set()
    )
    assert not any(other[name].is_contiguous() for name in changed - {"a"})
