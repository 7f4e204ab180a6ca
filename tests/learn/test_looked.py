"""Before a file is judged, each address is looked at: one outside of its tensor is told with its line and offset."""

import re

import pytest

pytest.importorskip("triton")

import torch

from common.learn import memcheck
from common.learn.access_trace import extent
from common.learn.errors import in_file
from common.learn.exercise import find
from common.learn.gate import NOT_YET
from common.learn.grade import grade

EXERCISE = find("ch1/coalesce")
RIGHT = EXERCISE.solution.read_text(encoding="utf-8")
STORE = r"\(line 35, `tl\.store\(out_ptr \+ .*`\)"
LOAD = r"\(line 34, `x = tl\.load\(points_ptr \+ offsets, .*`\)"
FAULTS = {
    "stores beside": (
        ("out = torch.empty(n", "out = torch.empty(n - 40"),
        rf"^at size check \(n 1000\): program 3 stores to out at offset 960, but out has 960 elements {STORE}: what "
        r"has to be masked\?$",
    ),
    "stores into another tensor that torch makes": (
        ("out = torch.empty(", "beside, out = torch.empty(99), torch.empty(", "mask=rows < n)", "mask=rows <= n)"),
        rf"program 3 stores to out at offset 1000, but out has 1000 elements {STORE}",
    ),
    "a wrong stride": (
        ("4 * rows[:, None]", "4 * n * rows[:, None]"),
        rf"program 0 loads points at offset 4000, but points has 4000 elements {LOAD}: what has to be masked, or is a "
        r"stride wrong\?$",
    ),
    "bytes": (("out_ptr + rows,", "out_ptr + 4 * rows,"), rf"{STORE}: do the offsets count bytes\?"),
    "NaN beside the pointer": (
        ("    tl.store(out_ptr + rows,", "    a = tl.sum(x) * float('nan'); tl.store(out_ptr + rows + n, a +"),
        r"program 0 stores to out at offset 1000, but out has 1000 elements \(line 35, ",
    ),
    "a later size": (
        ("rows[:, None] < n, ", "(rows[:, None] < n) | (n == 1), "),
        r"^at size check/one \(n 1\): program 0 loads points at offset 4, but points has 4 elements",
    ),
    "an empty grid": (
        ("(triton.cdiv(n, 256),)", "(n // 2048,)"),
        r"^at size check \(n 1000\): the grid is \(0,\): no program was launched$",
    ),
    "a grid that is empty at a later size": (
        ("(triton.cdiv(n, 256),)", "(n // 256,)"),
        r"^wrong answer at size check \(n 1000\)\. Answer\[768\] is never written",
    ),
    "torch at one size": (
        ("    out = torch.empty(n", "    if n == 1:\n        return (points * points).sum(1)\n    out = torch.empty(n"),
        r"^the values are right, but at size check/one \(n 1\): `run` launches no kernel there: the work has to be "
        r"done by yours at every size$",
    ),
    "an error of `run`": (
        ("torch.empty(n,", "torch.emtpy(n,"),
        r"^at size check \(n 1000\): line 40, `out = torch\.emtpy",
    ),
}  # fmt: skip


@pytest.fixture
def last(tmp_path):
    """last(changes): the gate that the changed solution fails."""

    def of(changes):
        text = RIGHT
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "own.py").write_text(text, encoding="utf-8")
        found = grade(EXERCISE, tmp_path / "own.py")
        assert found.status == NOT_YET
        return found.gates[-1]

    return of


@pytest.mark.parametrize("fault", FAULTS)
def test_what_would_end_the_judge_is_told_with_its_line(fault, last):
    changes, words = FAULTS[fault]
    gate = last(changes)
    assert gate.name == "right" and re.search(words, gate.text), gate.text


@pytest.mark.parametrize(
    ("view", "elements"),
    [
        (torch.empty(3, 4), 12),
        (torch.empty(3, 4)[:, ::2], 11),
        (torch.empty(4).expand(3, 4), 4),
        (torch.empty(0, 4), 0),
    ],
)
def test_a_view_ends_with_its_last_element(view, elements):
    assert extent(view) == 4 * elements


def test_a_loop_that_does_not_end_is_told_once(last, monkeypatch):
    monkeypatch.setattr(memcheck, "DEADLINE_S", 2.0)
    gate = last(("    tl.store(", "    while n > 0:\n        n += 0\n    tl.store("))
    assert gate.text == (
        "at size check (n 1000): too slow, or without end: at work, but no progress for 2 s: does each loop end?"
    )


def test_what_only_the_compiler_refuses_is_told_with_its_line(last):
    gate = last(
        ("@triton.jit", "FACTOR = 1\n\n\n@triton.jit", "tl.sum(x * x, axis=1)", "FACTOR * tl.sum(x * x, axis=1)")
    )
    words = r"^sm_80: line 38, `tl\.store\(.* FACTOR \* .*`: Cannot access global variable FACTOR"
    assert gate.name == "code" and re.search(words, gate.text), gate.text


def test_a_compilers_error_names_the_files_line(tmp_path):
    path = tmp_path / "own.py"
    path.write_text("# a comment\n\n\n@triton.jit\ndef kernel(x_ptr):\n    x = tl.load(x_ptr)\n", encoding="utf-8")
    said = "line 6, `x = tl.load(x_ptr)`: no such thing"
    assert in_file("sm_90: kernel for sm_90: at 2:4: no such thing", path) == f"sm_90: {said}"
    assert in_file("CompilationError: at 2:4: no such thing", path) == f"CompilationError: {said}"
    assert in_file("look at 2 o'clock", path) == "look at 2 o'clock"
