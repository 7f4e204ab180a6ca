"""What of Python does not work on blocks is found in a kernel's text, and only there and only on blocks."""

import pytest

pytest.importorskip("triton")

from common.learn.exercise import EXERCISES, find
from common.learn.gate import NOT_YET
from common.learn.grade import grade
from common.learn.kernel_lint import python_words

KERNEL = """
import triton
import triton.language as tl

def host(a, b):
    return min(a, b) if a and b else abs(a)

@triton.jit
def kernel(x_ptr, n, m, BLOCK: tl.constexpr):
    pid, rows = tl.program_id(0), tl.arange(0, BLOCK)
    mask = rows < n
    x = tl.load(x_ptr + rows, mask=mask)
    last = min(n, tl.sum(x))
    {line}
"""
FOUND = {
    "y = min(x, 2.0)": "Python's `min` on blocks: write tl.minimum",
    "y = 1 + max(x, 0)": "Python's `max` on blocks: write tl.maximum",
    "y = abs(x.to(tl.float32))": "Python's `abs` on blocks: write tl.abs",
    "y = (rows < n) and (rows < m)": "Python's `and` on blocks: write &, with each comparison in brackets",
    "y = mask or (x > 0)": "Python's `or` on blocks: write |, with each comparison in brackets",
    "y = not mask": "Python's `not` on a block: write ~",
    "y = rows < n & rows < m": "`&` binds more tightly than a comparison: put each comparison in brackets",
    "y = mask | rows < m": "`|` binds more tightly than a comparison: put each comparison in brackets",
    "y = 0 <= rows < n": "Python's chain of comparisons on blocks: write two comparisons and &",
    "y = 1 if mask else 0": "Python asks a whole block for one decision: tl.where chooses for each lane",
}
NOT_FOUND = [
    "y = (rows < n) & (rows < m)", "y = (mask & (rows < m)) == mask", "y = rows & 1 == 0", "y = (rows & 3) < n",
    "y = pid < n and pid < m", "y = 1 if pid == 0 else 2", "y = max(pid, 1) + abs(n)",
    "y = x.dtype == tl.float16 and n", "y = tl.minimum(x, 2.0)",
]  # fmt: skip


@pytest.fixture
def said(tmp_path):
    def of(line):
        (tmp_path / "own.py").write_text(KERNEL.format(line=line), encoding="utf-8")
        return python_words(tmp_path / "own.py")

    return of


@pytest.mark.parametrize("line", FOUND)
def test_pythons_words_on_blocks_are_found_with_their_line(line, said):
    assert said(line).startswith(f"line 14, `{line}`: {FOUND[line]}")


@pytest.mark.parametrize("line", NOT_FOUND)
def test_what_works_on_blocks_and_on_numbers_is_not_found(line, said):
    assert said(line) == ""


@pytest.mark.parametrize("path", [*EXERCISES.glob("*/*/solution.py"), *EXERCISES.glob("*/*/alternatives/*.py")])
def test_right_answers_have_none(path):
    assert python_words(path) == ""


def test_a_wrong_answer_is_told_of_them(tmp_path):
    exercise = find("ch1/coalesce")
    text = exercise.solution.read_text(encoding="utf-8").replace("x * x, axis", "max(x * x, x), axis")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    found = grade(exercise, tmp_path / "own.py")
    assert found.status == NOT_YET and "write tl.maximum" in found.gates[-1].text
