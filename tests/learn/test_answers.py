"""Answers that are numbers: how they are shown beside what was counted."""

import pytest

from common.learn import answer_gates


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (32000, "you say 32,000, counted 36,000: 1.12 times too low"),
        (35000.5, "you say 35,000.5, counted 36,000: 3% too low"),
        (None, "None is no number. Counted 36,000"),
    ],
)
def test_what_is_said_and_what_is_counted_have_one_format(value, words):
    assert answer_gates._count_text(value, 36000.0) == words


@pytest.mark.parametrize(("high", "fits"), [(0.27, True), (0.28, False)])
def test_a_range_may_be_as_wide_as_is_allowed(monkeypatch, high, fits):
    """0.27 / 0.18 is a little more than 1.5 in binary."""
    monkeypatch.setattr(answer_gates, "newest_figure", lambda _: "0.2x")
    gate = answer_gates._range("ratio", (0.18, high), {"widest": 1.5, "figure": ""})
    assert ("says little" not in gate.text) == fits
