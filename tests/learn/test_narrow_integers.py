"""Integers of 32 bits with fewer: offsets that wrap around in a large array are wrong in a small one, others stay."""

import re

import pytest

pytest.importorskip("triton")

import numpy as np
from triton import language as tl
from triton.runtime import interpreter

from common.learn.exercise import find
from common.learn.kernel_gates import as_pair
from common.learn.narrow_integers import narrow_integers, wrapped_answer
from common.pairs.pair import discover

OFFSETS = find("ch2/offsets")
SUM = "row * n_cols + cols"
BITS = {"narrow/tall": 20}
FIRST = r"^at size narrow/tall \(n_rows 700, n_cols 1001\), with 20 bits for integers of 32: "


@pytest.mark.parametrize(
    ("kind", "of", "kept"),
    [
        ("int32", 2**19 - 1, 2**19 - 1),
        ("int32", 2**19, -(2**19)),
        ("int32", -5, -5),
        ("uint32", 2**20 + 3, 3),
        ("int64", 2**40, 2**40),
    ],
)
def test_what_is_computed_wraps_around_at_so_many_bits(kind, of, kept):
    with narrow_integers(20):
        handle = interpreter.TensorHandle(np.array([of], kind), getattr(tl, kind))
    assert handle.data.dtype == kind and int(handle.data[0]) == kept


@pytest.mark.parametrize(
    ("get", "of", "kept"),
    [
        ("int32", 2**31 - 1, 2**19 - 1),
        ("uint32", 2**31, 2**19),
        ("uint32", 2**32 - 1, 2**20 - 1),
        ("int64", 2**32, 2**20),
        ("int32", 1024, 1024),
    ],
)
def test_constants_at_a_limit_of_32_bits_are_at_the_narrower_limit(get, of, kept):
    with narrow_integers(20):
        assert int(getattr(interpreter.interpreter_builder, f"get_{get}")(of).data[0]) == kept
    assert int(getattr(interpreter.interpreter_builder, f"get_{get}")(of).data[0]) == of


@pytest.fixture
def problem(tmp_path):
    """problem(offsets): what is said of the start with these offsets."""

    def of(offsets):
        path, start = tmp_path / "answer.py", OFFSETS.start.read_text(encoding="utf-8")
        path.write_text(start.replace(SUM, offsets), encoding="utf-8")
        with as_pair(OFFSETS, path) as folder:
            (pair,) = discover(folder)
            return wrapped_answer(pair, BITS)

    return of


@pytest.mark.parametrize(
    "offsets",
    ["tl.cast(row, tl.int64) * n_cols + cols", f"({SUM}).to(tl.uint32)", f"({SUM}).to(tl.int64) & 4294967295"],
)
def test_every_way_to_right_offsets_is_right(offsets, problem):
    assert problem(offsets) == ""


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        (SUM, "program 523 loads codes at offset -524288, "),
        (f"tl.maximum({SUM}, 0)", r"answer\[0, 0\] should be "),
        (f"({SUM}) & 2147483647", "answer"),
    ],
)
def test_offsets_that_wrap_around_are_wrong_inside_and_outside_of_the_arrays(offsets, says, problem):
    text = problem(offsets)
    assert re.search(FIRST + says, text) and text.endswith("does an offset still wrap around?"), text
