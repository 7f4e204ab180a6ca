"""What a reader predicts in a notebook is kept with its question and the figure; a bad store costs one line."""

import math

import numpy as np
import pytest
from samples import one_pair, pair_result, version

from common.learn import learner_log
from common.notebook import nb, questions


@pytest.fixture
def stride(naive, tmp_path, monkeypatch):
    """A pair ch9/stride; stride() changes it."""
    monkeypatch.setattr(questions, "ROOT", tmp_path)
    one_pair(tmp_path / "ch9", version("return x + x + w_shift"), name="stride")
    other = version("return w_shift + x + x")
    return lambda: (tmp_path / "ch9/optimized_stride.py").write_text(other, encoding="utf-8")


def kept(*fields):
    return [tuple(each.get(field) for field in fields) for each in learner_log.predictions()]


def test_an_answer_is_kept_with_its_question_and_the_first_is_locked(stride, store, capsys):
    for answer in (2.5, 2.5, (1.5, 6.0), 2.5):
        nb.predict("ch9/stride", ratio=answer)
    assert kept("of", "pair", "said", "range", "locked") == [
        ("ch9/stride ratio", "ch9/stride", 2.5, None, True),
        ("ch9/stride ratio", "ch9/stride", 3.0, [1.5, 6.0], False),
        ("ch9/stride ratio", "ch9/stride", 2.5, None, False),
    ]
    revised = "ratio: your first answer is locked; this one is kept as a revision\n"
    assert capsys.readouterr().out == revised * 2


def test_a_question_that_is_asked_again_reminds_of_the_first_answer(naive, capsys):
    row, again = pair_result().rows[0], ["ch9/x ratio", "ch9/x word", "ch9/x open", "ch9/unasked ratio"]
    said = nb.predict("ch9/x", ratio=(1.5, 6.0), word="calls", open=7)
    nb.against(said["ratio"], row)
    nb.compared(said["word"], "memory")
    nb.predict("ch9/x", ratio=2.0)
    capsys.readouterr()
    with pytest.raises(questions.NoPrediction):
        nb.predict("ch9/y", again=again, ratio=None)
    reminders = ["ch9/x ratio: you said 1.50 to 6.00, it was 2.00", "ch9/x word: you said calls, it was memory"]
    reminders.append("ch9/x open: you said 7.00")
    assert capsys.readouterr().out.splitlines() == [f"asked before, {each}" for each in reminders]
    assert nb.predict("ch9/y", again=again, ratio=8.0) == {"ratio": 8.0}
    assert kept("of", "locked")[-1] == ("ch9/y ratio", True)


def test_a_pair_that_changes_asks_anew(stride):
    nb.predict("ch9/stride", ratio=2.5)
    stride()
    nb.predict("ch9/stride", ratio=4.0)
    (first, _), (second, is_locked) = kept("hash", "locked")
    assert first != second and is_locked


def test_nothing_of_the_naive_forecaster_is_kept(naive, store):
    naive()
    said = nb.predict("ch9/stride", ratio=None, resource=None)
    nb.against(said["ratio"], pair_result().rows[0])
    nb.compared(said["resource"], "calls")
    assert not store.exists()


def test_a_question_without_all_answers_keeps_none(naive, store):
    with pytest.raises(questions.NoPrediction):
        nb.predict("ch9/stride", ratio=2.5, resource=None)
    assert not store.exists()


def test_the_first_figure_is_kept_beside_each_answer_that_has_none(stride):
    row, terms = pair_result().rows[0], {"bytes in flight": 9.0, "bytes moved": 1.0, "the same bytes": 3.0}
    said = nb.predict("ch9/stride", ratio=(1.5, 3.0), resource="calls")
    nb.against(said["ratio"], row, terms)
    nb.against(said["ratio"], pair_result(ratio=9.0).rows[0])
    nb.compared(said["resource"], "memory")
    assert kept("found", "interval", "naive", "bytes") == [
        (row.ratio, [*row.interval], 8.0, 1.0),
        ("memory", None, "memory", None),
    ]
    nb.compared(nb.predict("ch9/stride", ratio=4)["ratio"], np.float32(5.0))
    assert kept("said", "found", "locked")[2] == (4, 5.0, False)


@pytest.mark.parametrize("answer", [(3, 1), (0, 1), (1, 2, 3), (1, "2"), (1, math.inf), {"a": 1}, [], 1j])
def test_what_is_no_answer_is_told_in_one_line(answer, naive, store):
    with pytest.raises(questions.NoPrediction, match=r"^ratio = .*: write a number, or a range \(low, high\)"):
        nb.predict("ch9/stride", ratio=answer)
    with pytest.raises(questions.NoPrediction, match=r"^resource = .*: write a word"):
        nb.predict("ch9/stride", ratio=8, resource=answer)
    assert not store.exists()


@pytest.mark.parametrize("fault", ["a folder", "no folder", "torn"])
def test_a_store_that_cannot_be_used_costs_one_line_and_not_the_cell(fault, naive, store, capsys):
    if fault == "no folder":
        store.parent.write_text("a file")
    else:
        store.mkdir(parents=True) if fault == "a folder" else store.parent.mkdir()
    if fault == "torn":
        store.write_bytes(b'\xff\x00{"at": 1, "what": "predict", "of": "ch9/stride ratio"')
    said = nb.predict("ch9/stride", ratio=2.5, resource="calls")
    assert said == {"ratio": 2.5, "resource": "calls"}
    lines = capsys.readouterr().out.splitlines()
    named = store.parent if fault == "no folder" else store
    assert len(lines) == (fault != "torn") and all(f"your answers are not kept: {named}: " in line for line in lines)
    assert nb.against(said["ratio"], pair_result().rows[0]).startswith("you said 2.50x")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == (fault != "torn") and all(f"this figure is not kept: {named}: " in line for line in lines)
