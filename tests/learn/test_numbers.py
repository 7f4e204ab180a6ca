"""Numbers that a reader writes, of whatever type: read alike everywhere, or named with their answer, and the others
are judged.
"""

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from common.learn import answer_gates, kernel_gates
from common.learn.exercise import Exercise, find
from common.learn.forecast_score import ends, number
from common.learn.gate import CANNOT, NOT_YET, PASSED, UNSURE, Gate, Grade
from common.notebook import questions
from common.notebook.questions import NoPrediction
from common.record.outcome import Verdict
from common.record.result import Row

NUMBERS = (2, 2.0, np.float32(2), np.int64(2), Decimal(2), Fraction(4, 2), torch.tensor(2.0), torch.tensor([2]))
NONE = (
    None, True, "2", b"2", 2j, [2.0], (), float("inf"), float("-inf"), float("nan"), 1e400, 10**400, Decimal("sNaN"),
    torch.tensor([1.0, 2.0]), np.zeros(3), {}, len,
)  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: type(value).__name__)
def test_a_number_is_one_in_every_type(value):
    assert number(value) == 2.0 and ends((value, value)) == (2.0, 2.0)
    assert answer_gates._number(value, {"is": 2}) == (True, "2: right")
    assert answer_gates._count_text(value, 4.0).startswith("you say 2, counted 4")
    assert float(questions.value("a", value)) == 2.0
    assert questions.value("a", (value, 8)).ends == (2.0, 8.0)


@pytest.mark.parametrize("value", NONE, ids=lambda value: f"{type(value).__name__} {value!r:.20}")
def test_what_is_no_number_is_said_and_ends_nothing(value, monkeypatch):
    monkeypatch.setattr(answer_gates, "newest_figure", lambda _: "2.0x")
    assert number(value) is None and ends((1, value)) is None
    passed, text = answer_gates._number(value, {"is": 2})
    assert not passed and text.endswith(" is no positive number") and "\n" not in text
    gate = answer_gates._range("a", (1, value), {"figure": ""})
    assert gate.passed is False and gate.text.endswith("is no range: write (low, high)") and gate.scored is None
    assert "is no number" in answer_gates._count_text(value, 4.0)
    passed, text = answer_gates._word(value, {"of": ["no"], "is": "no"})
    assert not passed and text.endswith("is none of no")
    with pytest.raises(NoPrediction, match="write a number"):
        questions.value("a", (1, value))


@pytest.mark.parametrize("ends_", [(3, 2), (0, 1), (-1, 1), (1, 2, 3), 2, "12", {1: 2}])
def test_what_is_no_range_of_numbers_above_0_is_none(ends_):
    assert ends(ends_) is None


def test_an_answer_that_raises_is_named_and_the_others_are_judged(tmp_path):
    (path := tmp_path / "answers.py").write_text("a = (1, inf)\nb = 8\nc, d = 1 / 0, 2\nimport no_such_module\n")
    exercise = Exercise("ch1/x", tmp_path, "", "diagnose", "", "", "", (), 5, 1)
    exercise.answers.update({name: {"is": 8} for name in "abc"})
    gates = answer_gates._constants(exercise, path, None)
    assert [gate.passed for gate in gates] == [False, True, False]
    assert "`a`: NameError: name 'inf' is not defined" in gates[0].text and "ZeroDivisionError" in gates[2].text


def test_a_gate_that_could_not_run_is_no_pass():
    right, speed = Gate("right", True, ""), Gate("speed", None, "no GPU")
    assert Grade(None, None, (right, speed)).status == PASSED
    for name in ("traffic", "code", "softmax"):
        assert Grade(None, None, (right, Gate(name, None, "cannot run"), speed)).status == CANNOT
    assert Grade(None, None, (right, Gate("star", None, "", is_extra=True), speed)).status == PASSED


@pytest.mark.parametrize(
    ("verdict", "status"), [("unsure", UNSURE), ("too short", UNSURE), ("crashed", NOT_YET), ("skipped", PASSED)]
)
def test_a_kernel_without_a_time_has_no_speed(verdict, status, monkeypatch):
    monkeypatch.setattr(kernel_gates, "has_gpu", lambda: True)
    found = SimpleNamespace(rows=[Row("optimized", "baseline", Verdict(verdict))])
    monkeypatch.setattr(kernel_gates, "_result", lambda pair, fast: found)
    (speed,) = kernel_gates._speed(None, None)
    assert Grade(None, None, (Gate("right", True, ""), speed)).status == status


@pytest.mark.parametrize(
    ("exercise", "interval", "passed", "end"),
    [
        ("ch1/ragged", (0.68, 0.8), True, "1.00 ms"),
        ("ch1/ragged", (0.6, 0.65), False, "; at least 0.667x passes"),
        ("ch0/stride", (0.6, 0.8), False, "; at least 0.833x passes"),
        ("ch0/stride", (0.8, 0.9), None, "; at least 0.833x passes"),
    ],
)
def test_a_kernel_that_is_not_fast_enough_is_told_what_passes(exercise, interval, passed, end, monkeypatch):
    monkeypatch.setattr(kernel_gates, "has_gpu", lambda: True)
    row = SimpleNamespace(interval=interval, ratio=interval[0], variant="optimized")
    found = SimpleNamespace(rows=[row], arms={"optimized": SimpleNamespace(median_s=1e-3, of_limit=None)})
    monkeypatch.setattr(kernel_gates, "_result", lambda pair, fast: found)
    speed, _ = kernel_gates._speed(find(exercise), None)
    assert (speed.passed, speed.is_unsure) == (passed, passed is None) and speed.text.endswith(end)
