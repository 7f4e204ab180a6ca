"""What a grader sees in loads and stores: a lane that nothing defines, stores without an order, an error's line."""

import re

import pytest

pytest.importorskip("triton")

from common.learn import diagnosis
from common.learn.errors import not_compiled, plain, spill_advice
from common.learn.exercise import find
from common.learn.failure_text import wrong_answer
from common.learn.gate import NOT_YET
from common.learn.grade import grade
from common.learn.kernel_gates import as_pair
from common.pairs.pair import discover
from learn.said import finding


def wrong_answer_of(line):
    return wrong_answer(finding(line))


EXERCISE = find("ch1/coalesce")
RIGHT = EXERCISE.solution.read_text(encoding="utf-8")
TOLD = wrong_answer_of("wrong answer at size check: element 0 of 1000 is 7, expected 8")
HINTS = {
    "luck": ((), r"^wrong answer at size check \(n 1000\): answer\[0\] should be 8, got 7$"),
    "a block of 48": (
        ("BLOCK=256", "BLOCK=48"),
        r"\. Line \d+, `rows = .*`: the size of a block must be a power of two",
    ),
    "no store": (("mask=rows < n)", "mask=rows < 0)"), "No program has stored anything"),
    "one program": (
        ("(triton.cdiv(n, 256),)", "(1,)"),
        r"Answer\[256\] is never written \(.*\)\. Nor is anything after it",
    ),
    "a short mask": (
        ("rows < n)", "rows < n - 1)"),
        r"Program 3 has a lane for it, which is masked: is the mask right",
    ),
}


@pytest.fixture
def said(tmp_path):
    """said(changes, function): what one of the two functions says of the changed solution."""

    def of(changes, function=diagnosis.diagnose, of=TOLD):
        path = tmp_path / "own.py"
        path.write_text(changed(changes), encoding="utf-8")
        with as_pair(EXERCISE, path) as folder:
            (pair,) = discover(folder)
            return function(pair, of, None)

    return of


def changed(changes):
    text = RIGHT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("fault", HINTS)
def test_a_wrong_answer_looks_like_its_fault(fault, said):
    changes, words = HINTS[fault]
    assert re.search(words, said(changes)), said(changes)


def test_a_right_answer_owes_nothing_to_luck(said):
    assert said((), diagnosis.bounds, "check") == ""


@pytest.mark.parametrize(("warps", "words"), [(3, "num_warps is 3, and must be one of 1, 2, 4"), (8, "^$")])
def test_a_number_of_warps_that_no_gpu_can_launch_is_found(warps, words, said):
    assert re.search(words, said(("BLOCK=256)", f"BLOCK=256, num_warps={warps})"), diagnosis.bounds, "check"))


SWAPPED = "tl.store(out_ptr + (rows ^ 1), rows, mask=(rows ^ 1) < n)"  # a lane writes its neighbour's element


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (SWAPPED, r"program 0 stores 1 and .* to answer at offset 0, in two lanes"),
        (f"{SWAPPED}; tl.debug_barrier()", "^$"),
        ("tl.store(out_ptr + rows, rows, mask=rows < n)", "^$"),
    ],
    ids=["other lanes", "other lanes before a barrier", "the same lanes"],
)
def test_stores_of_two_lanes_to_one_element_have_no_order(before, words, said):
    found = said(("    tl.store(", f"    {before}\n    tl.store("), diagnosis.bounds, "check")
    assert re.search(words, found), found


UNDEFINED = (", other=0.0)", ")", "tl.sum(x * x, axis=1)", "tl.sum(x * x, axis=1) + 0.0 * tl.sum(x)")
MAXIMUM = (", other=0.0)", ")", "tl.sum(x * x, axis=1)", "tl.sum(x * x, axis=1) + 0.0 * tl.max(x)")


@pytest.mark.parametrize("changes", [UNDEFINED, MAXIMUM], ids=["sum", "maximum"])
@pytest.mark.parametrize("function", [(diagnosis.diagnose, TOLD), (diagnosis.bounds, "check")])
def test_a_right_answer_that_needs_zeros_in_masked_lanes_is_luck(changes, function, said):
    words = (
        r"ine 34, `x = tl.load\(.*\)`: without `other`, a masked lane holds any value, and the result depends on it$"
    )
    assert re.search(words, said(changes, *function)), said(changes, *function)


def test_a_masked_lane_that_is_not_stored_needs_no_other(said):
    assert said((", other=0.0)", ")"), diagnosis.bounds, "check") == ""


def test_luck_does_not_pass(tmp_path):
    (tmp_path / "own.py").write_text(changed(UNDEFINED), encoding="utf-8")
    found = grade(EXERCISE, tmp_path / "own.py")
    assert found.status == NOT_YET and "a masked lane holds any value" in found.gates[-1].text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AssertionError(\"Loop-carried variable acc has initial type <['64'], fp16> but is re-assigned to "
         "<['64'], fp32> in loop! Please make sure that the type stays consistent.\")",
         "acc is fp16[64] before the loop and becomes fp32[64] in it: it must keep its type"),
        ("ValueError(\"axis 1 out of bounds for shape ['constexpr[64]']\")", "axis 1 out of bounds for shape [64]"),
        ("NameError(\"name 'z' is not defined\")", "name 'z' is not defined"),
        ("plain words", "plain words"),
    ],
)  # fmt: skip
def test_a_compilers_words_become_plain(text, words):
    assert plain(text) == words


def test_a_compilers_error_names_the_kernels_line():
    class Kernel:
        src = "def kernel(x_ptr):\n    x = tl.load(x_ptr)\n    y = x.item()\n"

    assert not_compiled("kernel for sm_90: at 3:8: no such thing", Kernel) == "`y = x.item()`: no such thing"
    assert not_compiled("kernel for sm_90: no place", Kernel) == "kernel for sm_90: no place"


@pytest.mark.parametrize(
    ("threads", "words"),
    [
        (32, "^a block of V values in 1 warp is V / 32 values per thread, which has at most 255 registers"),
        (256, "in 8 warps is V / 256 values per thread, .* 255 registers: take more warps, or a smaller block"),
        (1024, "in 32 warps is V / 1024 values per thread, .* 64 registers: take a smaller block"),
    ],
)
def test_spills_are_told_by_values_per_thread(threads, words):
    assert re.search(words, spill_advice(threads))
