"""An answer that is as right as the reference's has its values in the end; a wrong one stays what it is."""

import numpy as np
import pytest
import torch

from common.checks import stress
from common.checks.ambiguous_answers import resolve
from common.checks.arrays import merge_numbers
from common.checks.compare_to_baseline import Error, drift
from common.checks.compare_to_reference import compare
from common.engine.reference import Answer, Reference

X = torch.tensor([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, float("nan"), 0.0]])


def resolved(out, reference, *neighbours, inputs=None):
    return resolve([out], [reference], [[near] for near in neighbours], inputs)[0].tolist()


def test_beside_an_edge_the_other_side_is_as_right():
    whole = torch.tensor([1, 2, 3, 4])
    out = torch.tensor([1, 3, 4, 4], dtype=torch.int8)
    assert resolved(out, whole, torch.tensor([1, 3, 3, 4])) == [1, 2, 4, 4]  # the third is no edge
    assert resolved(out.numpy(), whole.numpy(), np.array([1, 3, 3, 4])) == [1, 2, 4, 4]
    flags = torch.tensor([True, False])
    assert resolved(~flags, flags, torch.tensor([False, False])) == [True, True]
    assert resolved(out, whole) == out.tolist()
    assert resolved(out, whole, torch.tensor([1, 3, 3])) == out.tolist()  # another number of values says nothing


def test_a_jump_is_taken_off_and_the_error_stays():
    model, near = torch.tensor([1.0, 2.0, 3.0]).double(), torch.tensor([1.0, 2.5, 3.0]).double()
    out = torch.tensor([1.25, 2.5, 3.25])
    assert resolved(out, model, near) == [1.25, 2.0, 3.25]
    out[1] = 2.3125  # nearer to the far side, by an error that no rounding explains
    assert resolved(out, model, near) == [1.25, 1.8125, 3.25]
    assert resolved(out, model, model + 1e-9) == out.tolist()  # no jump


@pytest.mark.parametrize(
    ("out", "reference", "is_right"),
    [
        ([2, 0], [1, 1], True),  # argmax along the last axis
        ([0, 0], [1, 1], False),
        ([[2, 1], [1, 0]], [[1, 2], [0, 1]], True),  # topk
        ([[2, 2], [1, 1]], [[1, 2], [0, 1]], False),  # one of equals, twice
        ([[2, 4], [1, 0]], [[1, 2], [0, 1]], False),  # beside the array
        ([[2, -1], [1, 0]], [[1, 2], [0, 1]], False),
        ([[3, 1], [1, 2]], [[3, 1], [0, 2]], True),  # NaN is equal to NaN
    ],
)
def test_an_index_of_an_equal_value_is_right(out, reference, is_right):
    out, reference = torch.tensor(out), torch.tensor(reference)
    assert (resolved(out, reference, inputs={"x": X}) == reference.tolist()) is is_right


def test_an_index_of_an_equal_row_is_right():
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    assert resolved(torch.tensor([2, 1, 0]), torch.tensor([0, 1, 2]), inputs={"rows": rows}) == [0, 1, 2]
    assert resolved(torch.tensor([2, 1, 2]), torch.tensor([0, 1, 2]), inputs={"rows": rows}) == [2, 1, 2]


class Version:
    is_library = answer_differs = False
    precision, custom = "", None


@pytest.mark.parametrize(("error", "is_right"), [(5e-6, True), (1e-4, False)])
def test_a_sum_to_one_number_is_not_held_against_a_baseline_with_a_lucky_error(error, is_right):
    exact = torch.tensor([100.0], dtype=torch.float64)
    near = [exact * (1 + 1e-6), exact * (1 - 1e-6)]
    reference = Reference(exact, None, Answer(exact.float()), None, lambda: near)
    assert (reference.mismatch(Version, Answer((exact * (1 + error)).float())) is None) is is_right


def test_few_values_have_no_distance_as_a_whole():
    base = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    for count, is_near in ((1000, False), (1, True)):
        part = base[:count]
        assert (drift(part * (1 + 1e-4), part, {"": Error()}) is None) is is_near


def test_a_long_list_of_numbers_is_compared_as_one_array():
    values = torch.randn(100)
    assert torch.equal(merge_numbers({"y": [*values]})["y"], values)
    for other in ([*values[:9]], [*values[None]], [*values[1:], values[0].double()], values.tolist()):
        assert merge_numbers(other) is other


def test_a_tolerance_narrower_than_the_types_own_is_named():
    exact = torch.linspace(1, 2, 1000, dtype=torch.float64)
    out = (exact * (1 + 1e-5)).float()
    narrow, wide = (compare(out, exact, None, custom=(limit, limit)) for limit in (1e-9, 3e-4))
    assert narrow.facts["narrow"] is True and wide is None


def test_int8_is_a_precision_and_four_bits_are_not():
    x = torch.randn(64, 512, generator=torch.Generator().manual_seed(0)).double()
    w = torch.randn(512, 64, generator=torch.Generator().manual_seed(1)).double()

    def product(steps):
        scales = [t.abs().amax(axis, keepdim=True) / steps for t, axis in ((x, 1), (w, 0))]
        return (((x / scales[0]).round() @ (w / scales[1]).round()) * scales[0] * scales[1]).float()

    assert compare(product(127), x @ w, (x @ w).float(), "int8") is None
    for out in (product(7), product(127) * 0, product(127).roll(1)):
        assert compare(out, x @ w, (x @ w).float(), "int8") is not None


def test_infinity_is_no_draw_where_torchs_own_product_loses_it(monkeypatch):
    tree = {"x": torch.ones(3), "y": torch.ones(3, dtype=torch.bfloat16)}
    for is_kept in (True, False):
        monkeypatch.setattr(stress, "_keeps_infinity", lambda dtype, device, is_kept=is_kept: is_kept)
        assert ("-inf" in stress.suitable_draws(tree)) is is_kept
