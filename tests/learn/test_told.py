"""A wrong answer in a reader's words: one element, by its output's name and its index, at a size with its arguments."""

import pytest
import torch

pytest.importorskip("triton")

from common.learn import diagnosis
from common.learn.exercise import find
from common.learn.failure_text import HARD, wrong_answer
from common.learn.first_mismatch import mismatch_text
from common.learn.grade import grade
from common.pairs.pair import discover
from learn.said import finding


def wrong_answer_of(line):
    return wrong_answer(finding(line))


PAIR = """
import torch
import triton
import triton.language as tl

SIZES = {"check": {"rows": 3, "columns": 5}, "default": {"rows": 4096, "columns": 4096}}

def inputs(rows, columns, device="cuda"):
    return {"x": 1.0 + torch.arange(rows * columns, device=device).view(rows, columns)}

def reference(x):
    twice = 2 * x
    return twice, (x * x).sum(1)

@triton.jit
def kernel(x_ptr, twice_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(twice_ptr + row * n + cols, 2 * x, mask=cols < n)
    tl.store(sums_ptr + row, tl.sum(x * x, 0))

def run(x):
    rows, columns = x.shape
    twice, sums = torch.empty_like(x), x.new_empty(rows)
    kernel[(rows,)](x, twice, sums, columns, BLOCK=triton.next_power_of_2(columns))
    return twice, sums
"""
FIRST, SECOND = r"wrong answer at size check: [0]: ", r"wrong answer at size check: [1]: "
AT = "wrong answer at size check (rows 3, columns 5)"
STORE = "tl.store(twice_ptr + row * n + cols, 2 * x, mask=cols < n)"
SUM = "tl.store(sums_ptr + row, tl.sum(x * x, 0))"


@pytest.fixture
def pair(tmp_path):
    """pair(*changes): that of PAIR, where `changes` (old, new, old, new, ...) make its variant."""

    def of(*changes):
        own = PAIR
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in own
            own = own.replace(old, new)
        folder = tmp_path / "ch1"
        folder.mkdir()
        (folder / "baseline_two.py").write_text(f'"""Right."""\n{PAIR}')
        (folder / "optimized_two.py").write_text(f'"""The reader\'s."""\n{own}')
        (found,) = discover(folder)
        return found

    return of


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (FIRST + "element 7 of 15 is 1.5, expected -2", AT + ": `twice[1, 2]` should be -2, got 1.5"),
        (SECOND + "element 2 of 3 is 1.5, expected -2", AT + ": `sums[2]` should be -2, got 1.5"),
        (FIRST + "shape [3], expected [3, 5]", AT + ": `twice`: shape [3], expected [3, 5]"),
        (SECOND + "dtype torch.float16, the baseline's is torch.float32",
         AT + ": `sums`: dtype torch.float16, the right answer's is torch.float32"),
        (SECOND + "NaN or inf differ from the oracle's near element 0 of 3",
         AT + ": NaN or infinity is not where the right answer has it, from `sums[0]` on"),
        ("wrong answer at size check on -inf, with NaN in uninitialized memory: [0]: element 0 of 15 is 1, expected 2",
         AT + " on -inf, which this test writes into some elements of its inputs: `twice[0, 0]` should be 2, got 1"),
        ("wrong answer at size check on values around 10,000: [0]: element 5 of 15 is 1, expected 2",
         AT + " on values around 10,000: `twice[1, 0]` should be 2, got 1"),
        ("rank 1: wrong answer at size check: [0]: element 5 of 15 is 1, expected 2",
         "rank 1: " + AT + ": `twice[1, 0]` should be 2, got 1"),
    ],
)  # fmt: skip
def test_the_harness_in_a_readers_words(reason, text, pair):
    assert wrong_answer_of(reason).text(pair(), [(3, 5), (3,)]) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (SECOND + "element 2 of 3 is 1.5, expected -2", "element 2 of 3 (counted from 0) of output 2 should be -2"),
        (
            "wrong answer at the timed size, with NaN in uninitialized memory: [1]: element 2 of 3 is 1, expected 2",
            "wrong answer at size default (rows 4096, columns 4096): element 2 of 3 (counted from 0) of output 2",
        ),
        (SECOND.replace("[1]: ", "") + "element 2 of 3 is 1, expected 2", ": element 2 of 3 (counted from 0) should"),
    ],
)
def test_where_shapes_are_not_known_an_element_is_counted_through(reason, text, pair):
    assert text in wrong_answer_of(reason).text(pair())


def test_an_output_without_a_name_has_its_number(pair):
    two = pair()
    text = PAIR.replace("return twice, sums", "return twice, sums + 0")
    two.baseline.path.write_text(text)
    assert "output 2 of 2 at [2] should" in wrong_answer_of(SECOND + "element 2 of 3 is 1, expected 2").text(
        two, [(3, 5), (3,)]
    )


@pytest.mark.parametrize(
    ("change", "reason", "text"),
    [
        ((STORE, STORE.replace("2 * x", "x")), FIRST + "element 7 of 15 is 1.5, expected -2",
         AT + ". `twice[0, 0]` should be 2, got 1 (15 of 15 elements are wrong)"),
        ((SUM, SUM.replace("tl.sum(x * x, 0)", "0.0")), SECOND + "element 1 of 3 is 0, expected 2",
         AT + ". `sums[0]` should be 55, got 0 (3 of 3 elements are wrong)"),
        ((STORE, STORE.replace("cols < n", "(cols < n) & (row < 2)")), FIRST + "element 12 of 15 is -1e+38, expected 2",
         AT + ". `twice[2, 0]` is never written (it should be 22). Program 2 has a lane for it, which is masked: is "
         "the mask right?"),
        ((SUM, ""), SECOND + "element 1 of 3 is -1.7e+38, expected 2",
         AT + ". `sums[0]` is never written (it should be 55). No other element is, either: does a program store to "
         "it?"),
    ],
    ids=["value", "second output", "masked row", "never written at all"],
)  # fmt: skip
def test_one_element_and_what_it_looks_like(change, reason, text, pair):
    assert diagnosis.diagnose(pair(*change), wrong_answer_of(reason), None) == text


SPECIAL = ("2 * x, mask", "tl.where(x != x + 1, 2 * x, 0.0), mask")  # -inf is the same as -inf + 1


def test_hard_values_are_explained_and_their_first_wrong_element_is_named(pair):
    reason = "wrong answer at size check on -inf: [0]: NaN or inf differ from the oracle's near element 0 of 15"
    found = diagnosis.diagnose(pair(*SPECIAL), wrong_answer_of(reason), None)
    assert found == (
        f"{AT} on -inf, which this test writes into some elements of its inputs. `twice[2, 4]` should be -inf, got 0 "
        f"(1 of 15 elements are wrong). On ordinary values it is right, but hard values count, too: {HARD}"
    )


def test_of_large_values_only_infinities_are_compared(pair):
    reason = wrong_answer_of("wrong answer at size check on values around 100: [1]: element 0 of 3 is 1, expected 2")
    found = diagnosis.diagnose(pair(SUM, SUM.replace("x * x", "x * x * (1 + 0.1 * (x > 99))")), reason, None)
    assert "`sums[0]` should be 2, got 1. On ordinary values it is right" in found


@pytest.mark.parametrize(
    ("got", "text"),
    [
        ([3.0, 0.0, 3.0], "got 3 (1 of 3 elements are wrong). That belongs into out[2]"),
        ([0.0, 0.0, 3.0], "got 0 (1 of 3 elements are wrong)"),  # zero is what much else leaves there
        ([3.0, 7.0, 3.0], "got 3 (2 of 3 elements are wrong)"),  # one of two: by chance
    ],
)
def test_a_value_of_another_element_is_named_unless_it_is_zero_or_stands_there_by_chance(got, text):
    want = torch.tensor([1.0, 0.0, 3.0]).double()
    assert mismatch_text("out", torch.tensor(got), want, []) == f"out[0] should be 1, {text}"


RMS = "wrong answer at size check: relative RMS error {} in chunk 1 of 4, accepted 0.00056: not {}, or partly wrong"


@pytest.mark.parametrize(
    ("error", "precision", "words"),
    [
        ("0.0011", "fp16", "products or sums in float16: multiply and add in float32, and approximate no function"),
        ("0.05", "bf16", "products or sums in bfloat16: multiply and add in float32, and approximate no function"),
        ("0.05", "fp16", ""),
        ("0.0011", "fp32", ""),
    ],
)
def test_an_error_as_large_as_roundings_of_16_bits_is_called_so(error, precision, words, pair):
    said = wrong_answer_of(RMS.format(error, precision))
    assert said.rounding_cause.endswith(words) and bool(said.rounding_cause) is bool(words)
    assert ("or partly wrong" in said.text(pair())) is not bool(words)


def test_sums_of_float16_products_are_told_to_be_float32(tmp_path):
    exercise = find("ch0/linear")
    text = exercise.solution.read_text(encoding="utf-8").replace(", 64)", ", 16)").replace("=64", "=16")
    text = text.replace("tl.dot(x, w)", "tl.sum(x[:, :, None] * w[None, :, :], axis=1)")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    said = grade(exercise, tmp_path / "own.py").gates[-1].text
    says = ". The error is as large as that of products or sums in float16: multiply and add in float32"
    assert said.endswith(says + ", and approximate no function"), said


@pytest.mark.parametrize(
    ("got", "dtype", "says"),
    [
        (
            lambda want: want.half(),
            torch.float32,
            "All are near (off by at most 0.0004 of the largest number): are sums",
        ),
        (lambda want: want + 1, torch.float32, ""),
        (lambda want: want * torch.inf, torch.float16, ", or a number above 65,504 that is rounded to float16"),
        (
            lambda want: want * torch.inf,
            torch.float32,
            "Infinity on the way makes this: the exponential of a large number",
        ),
    ],
)
def test_lost_digits_and_overflow_are_told_from_other_wrong_values(got, dtype, says):
    want = torch.linspace(0.123, 1.234, 50, dtype=torch.float64)
    said = mismatch_text("out", got(want).to(dtype), want, []).partition("wrong)")[2]
    assert (says in said and bool(said) == bool(says)) and ("float16" in said) == (dtype == torch.float16)
