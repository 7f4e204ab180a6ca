"""Every cause has words, whatever facts a record holds of it; nothing ends in a traceback."""

import pytest

from common.record.outcome import Cause, Finding
from common.show import words
from common.show.ways_out import OF_BASELINE, OF_DRAW, OF_NARROW, WAYS_OUT, way_out
from tools.refusals import markdown


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
    assert words.text(found) == said
    assert words.text(found.with_facts(rank=1, whose="baseline")) == f"the baseline: rank 1: {said}"


def test_a_refusal_ends_with_what_to_write():
    found = Finding(Cause.WRONG_ELEMENT, {"index": 1, "of": 2, "got": 1.0, "expected": 2.0})
    assert way_out(found) == WAYS_OUT[Cause.WRONG_ELEMENT]
    assert way_out(found.with_facts(whose="baseline")) == OF_BASELINE
    assert way_out(found.with_facts(narrow=True)) == OF_NARROW
    assert way_out(found.with_facts(draw="NaN", whose="baseline")) == OF_DRAW
    assert way_out(Finding(Cause.RAISED, {"text": "ValueError", "draw": "NaN"})) == OF_DRAW
    assert way_out(Finding(Cause.MEMORY_ORDER, {"draw": "arrays with gaps"})) == WAYS_OUT[Cause.MEMORY_ORDER]
    assert way_out(Finding(Cause.NOT_PLAIN, {"whose": "baseline"})) == WAYS_OUT[Cause.NOT_PLAIN]
    assert way_out(Finding(Cause.FEW_BLOCKS)) == ""


def test_an_error_on_a_stress_draw_names_the_draw():
    assert words.text(Finding(Cause.RAISED, {"text": "ValueError: no", "draw": "NaN"})) == "on NaN: ValueError: no"


def test_the_page_has_a_row_for_each_way_out():
    rows = [line for line in markdown().splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(WAYS_OUT) + 4  # those that facts decide
    assert all(way in markdown() for way in WAYS_OUT.values()) and "{" not in markdown()
