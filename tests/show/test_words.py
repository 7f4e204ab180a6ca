"""Every cause has words, whatever facts a record holds of it; nothing ends in a traceback."""

import pytest

from common.record.outcome import Cause, Finding
from common.show import words


@pytest.mark.parametrize("cause", Cause)
def test_a_cause_has_words_with_any_facts_and_with_none(cause):
    assert words.text(Finding(cause))
    for value in (None, "nan", [3, 4], 1.5):
        facts = dict.fromkeys(("index", "of", "got", "error", "baseline", "bytes", "where", "size", "whose"), value)
        assert words.text(Finding(cause, facts))


def test_what_is_not_finite_is_kept_as_a_word():
    found = Finding(Cause.WRONG_ELEMENT, {"index": 1, "of": 2, "got": float("nan"), "expected": 2.0})
    assert found.facts["got"] == "nan" and words.text(found) == "element 1 of 2 is nan, expected 2"


def test_where_an_answer_was_wrong_stands_before_what():
    found = Finding(Cause.WRONG_INTEGERS, {"wrong": 1, "of": 3}).with_facts(
        where="size", size="check", draw="NaN", filled=True
    )
    said = "wrong answer at size check on NaN, with NaN in uninitialized memory: 1 of 3 values differ"
    said += "; if that is no valid input, say so in STRUCTURE or STRESS"
    assert words.text(found) == said
    assert words.text(found.with_facts(rank=1, whose="baseline")) == f"the baseline: rank 1: {said}"
