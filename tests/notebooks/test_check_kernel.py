"""What check_kernel says of a reader's kernel: each wrong one is told what it looks like, each waste is named."""

import re

import pytest
import torch
from primer import defined, solution

from common.notebook import kernel_check

pytest.importorskip("triton")

ADD, ROW_SUM, TRANSPOSE = (solution(name) for name in ("add", "row-sum", "transpose"))
FAULTS = {
    "no mask": ((", mask=mask)", ")"), "program 1 loads x at offset 127, but x has 127 elements: what has"),
    "bytes": (
        ("x_ptr + offsets", "x_ptr + 4 * offsets"),
        "program 0 loads x at offset 128, .*: do the offsets count bytes",
    ),
    "too few programs": (("triton.cdiv(n, 64)", "1"), r"out\[64\] is never written .* Nor is anything after"),
    "a step too long": (
        ("tl.program_id(0) * BLOCK", "tl.program_id(0) * (BLOCK + 1)"),
        r"out\[64\] is never written \(it should be .*\)\. 1 of 127 elements are not",
    ),
    "no program": (
        ("triton.cdiv(n, 64)", "n // 128"), "no program has stored anything: the result must come from a kernel",
    ),
    "one place": (
        ("out_ptr + offsets, x + y, mask=mask", "out_ptr + offsets % 64, x + y, mask=mask"),
        r"Programs 0 and 1 both write it: do its offsets depend on the program\?",
    ),
    "another element": (
        ("out_ptr + offsets, x + y", "out_ptr + n - 1 - offsets, x + y"), r"out\[0\] .* belongs into out\[126\]",
    ),
    "swapped": (("](x, y, out", "](out, y, x"), "program 0 stores to x, an input: are x and out swapped"),
    "adds": (("tl.store", "tl.atomic_add"), "got nan .* set it to 0 first"),
    "torch": (
        ("x + y, mask=mask)", "x, mask=mask)", "BLOCK=64)", "BLOCK=64)\n    out += y"),
        "torch.add_ did part of the work: the result must come from a kernel",
    ),
    "a large block": (("BLOCK=64", "BLOCK=128"), "a load or store has 128 lanes: the block has to keep its 64"),
}  # fmt: skip
ERRORS = {
    "BLOCK": (("BLOCK=64", "BLOCK=48"), "line 7, `offsets = .*`: the size of a block must be a power of two"),
    "a number as grid": (("[(triton.cdiv(n, 64),)]", "[2]"), r"line 16, .*: the grid must be a tuple.*\(programs,\)"),
    "no grid": (("[(triton.cdiv(n, 64),)]", ""), r"line 16, .*is called without a grid: a launch is add_kernel"),
    "an index": (("tl.load(x_ptr + offsets, mask=mask)", "x_ptr[offsets]"), r"line 9, .* write tl.load\(x_ptr \+ o"),
    "one address": (("out_ptr + offsets, x + y, mask=mask", "out_ptr, x + y"), "line 11, .*needs a block of addresses"),
    "a name": (("x + y,", "x + z,"), "line 11, .*: name 'z' is not defined$"),
    "no jit": (("@triton.jit\n", ""), "needs @triton.jit before its def"),
}  # fmt: skip


@pytest.fixture
def said(tmp_path, capsys):
    """said(solution, changes, name, ...): the check's words about it, without the line's end."""

    def of(text, changes, name, expected, shapes, **options):
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        kernel_check.check_kernel(defined(text, tmp_path)[name], expected, shapes, **options)
        return capsys.readouterr().out.removesuffix("\n")

    return of


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_kernel_is_told_what_it_looks_like(fault, said):
    changes, words = FAULTS[fault]
    out = said(ADD, changes, "add", torch.add, [(127,), (1,)], block=64)
    assert out.startswith("not yet: inputs of 127: ") and re.search(words, out), out
    assert out.count("\n") == 0


@pytest.mark.parametrize("fault", ERRORS)
def test_an_error_is_one_line_with_the_kernels_line(fault, said):
    changes, words = ERRORS[fault]
    out = said(ADD, changes, "add", torch.add, [(127,), (1,)])
    assert out.startswith("not yet: line ") and re.search(words, out), out
    assert out.count("\n") == 0


LOAD = "acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)"
LOADED = LOAD.removeprefix("acc += ").replace(", other=0.0", "")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((", other=0.0", ""), lambda x: x.sum(1)),
        ((LOAD, f"acc = tl.maximum(acc, {LOADED})", "tl.sum", "tl.max"), lambda x: x.amax(1).clamp(min=0)),
        ((LOAD, f"acc += tl.abs({LOADED}) > 1.0"), lambda x: (x.abs() > 1).double().sum(1)),
    ],
    ids=["sum", "maximum", "comparison"],
)  # fmt: skip
def test_a_lane_that_is_masked_without_other_holds_any_value(changes, expected, said):
    out = said(ROW_SUM, changes, "row_sum", expected, [(2, 128), (7, 150)])
    assert re.search("^not yet: inputs of 7 x 150: line 11, `.*`: without `other`, a masked lane holds any value", out)


def test_a_kernel_that_the_compiler_refuses_is_not_right(said):
    out = said(ROW_SUM, ("tl.float32", "tl.float16"), "row_sum", lambda x: x.sum(1), [(2, 128)])
    assert out == (
        "not yet: right in the interpreter, but the compiler refuses it: `for start in range(0, n_cols, BLOCK):`: "
        "acc is fp16[64] before the loop and becomes fp32[64] in it: it must keep its type"
    )


def test_a_stride_of_the_wrong_matrix_is_asked_for(said):
    out = said(TRANSPOSE, ("cols * n_rows", "cols * n_cols"), "transpose", lambda x: x.T, [(64, 32)])
    assert re.search(r"Programs \d+ and \d+ both write it: is the stride right\?$", out), out


def test_a_right_kernel_is_told_what_it_wastes(said):
    out = said(ADD, ("triton.cdiv(n, 64)", "n"), "add", torch.add, [(128,)])
    assert out.endswith("by 128 programs, 1.00 times the least (48). 126 programs have masked lanes only: is the grid "
                        "too large?")  # fmt: skip
    spread = ("tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
              "tl.arange(0, BLOCK) * tl.num_programs(0) + tl.program_id(0)")  # fmt: skip
    out = said(ADD, spread, "add", torch.add, [(1024,)])
    assert "traffic at 1024: 3,072 sectors by 16 programs, 8.00 times the least (384). Which sectors does it" in out


def test_sizes_beside_the_first_are_checked(said):
    out = said(ADD, ("triton.cdiv(n, 64)", "max(n // 64, 1)"), "add", torch.add, [(128,), (129,)])
    assert "not yet: inputs of 129: out[128]" in out


def test_an_error_of_the_check_itself_is_raised(monkeypatch):
    monkeypatch.setattr(kernel_check, "_wrong_call", lambda *_: 1 / 0)
    monkeypatch.setattr("common.learn.errors.is_own", lambda file: False)
    with pytest.raises(ZeroDivisionError):
        kernel_check.check_kernel(torch.add, torch.add, [(1,)])
