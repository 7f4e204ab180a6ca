"""A prediction is asked for before a result is shown, and answered in factors."""

import ast
import math
import os
import re
import tomllib

import numpy as np
import pytest
from cells import code_of
from samples import one_pair, pair_result, version

from common.learn import progress
from common.notebook import nb, predictions, questions
from common.pairs.pair import ROOT
from common.record.result import Row
from common.show.tables import ratio


@pytest.fixture
def naive(tmp_path, monkeypatch):
    """What the naive forecaster answers to ch9/stride."""
    file = tmp_path / "forecaster.toml"
    file.write_text('["ch9/stride"]\nratio = 8.0\nresource = "memory"\n', encoding="utf-8")
    monkeypatch.setattr(predictions, "NAIVE", file)
    monkeypatch.delenv(predictions.FORECASTER, raising=False)
    return lambda: monkeypatch.setenv(predictions.FORECASTER, "naive")


def test_answers_come_back_as_they_were_given(naive, capsys):
    assert nb.predict("ch9/stride", ratio=2.5, resource="calls") == {"ratio": 2.5, "resource": "calls"}
    assert capsys.readouterr().out == ""


def test_a_run_ends_in_one_line_where_an_answer_is_missing(naive):
    with pytest.raises(predictions.NoPrediction, match=r"replace None by your answer \(ratio\)") as error:
        nb.predict("ch9/stride", ratio=None, resource="calls")
    assert error.value._render_traceback_() == [str(error.value)]


def test_the_naive_forecaster_answers_what_is_missing_and_says_so(naive, capsys):
    naive()
    assert nb.predict("ch9/stride", ratio=None, resource="calls") == {"ratio": 8.0, "resource": "calls"}
    assert capsys.readouterr().out == "No reader answered here. The naive forecaster says: ratio = 8.0\n"


@pytest.mark.parametrize(
    ("said", "found", "says"),
    [
        (8, 8, "you said 8 sectors, counted 8: right"),
        (2.0, 1.88, "you said 2 sectors, counted 1.88: 6% too high"),
        (1.88, 2.0, "you said 1.88 sectors, counted 2: 6% too low"),
        (1.0, 1.82, "you said 1 sectors, counted 1.82: 1.82 times too low"),
        (8, 32, "you said 8 sectors, counted 32: 4.00 times too low"),
        (10_241, 641, "you said 10,241 sectors, counted 641: 16.0 times too high"),
        (0, 3, "you said 0 sectors, counted 3: wrong"),
        (0, 0, "you said 0 sectors, counted 0: right"),
    ],
)  # fmt: skip
def test_counts_are_compared_as_factors(said, found, says):
    assert nb.compared(said, found, "sectors") == says


def test_words_are_right_or_they_are_not():
    assert nb.compared("memory", "memory") == "you said memory: right"
    assert nb.compared("memory", "calls") == "you said memory: it is calls"


@pytest.mark.parametrize(
    ("said", "judged"),
    [
        (1.5, "1.33 times too low"),
        (1.9, "5% too low"),
        (1.97, "right"),
        (2.0, "right"),
        (3.0, "1.50 times too high"),
        (40.0, "20.0 times too high"),
    ],
)
def test_a_ratio_is_judged_by_the_interval_and_the_margin(said, judged):
    row = pair_result().rows[0]
    assert nb.against(said, row) == f"you said {said:#.3g}x, measured {ratio(row)}: {judged}"


def test_the_term_that_was_missed_is_named():
    row = pair_result().rows[0]  # 2.0
    terms = {"the bytes": 1.0, "the calls": 16.0, "both": 2.1}
    *_, text = nb.against(15.0, row, terms).splitlines()
    assert text == "nearest to the measured ratio: both (2.10x); nearest to yours: the calls (16.0x)"
    *_, near, text = nb.against(1.1, row, {"the bytes": 1.0}).splitlines()
    assert near == "nearest to the measured ratio: the bytes (1.00x)"
    assert text == "The nearest explanation gives 1.00x; a factor of 2.00 is still missing."
    assert nb.against(5.0, row, {"the calls": 16.0}).endswith("gives 16.0x, 8.00 times too much.")


def test_a_wide_interval_that_holds_a_prediction_says_little():
    row = Row("optimized", "baseline", "faster", ratio=1.48, interval=(1.33, 2.68))
    assert nb.against(2.6, row).endswith(": within the interval, which is wide: it says little")
    assert nb.against(4.0, row).endswith(": 2.70 times too high")


def test_without_a_ratio_the_verdict_answers():
    row = Row("optimized", "baseline", "skipped", "needs an NVIDIA GPU")
    assert nb.against(2.0, row) == "you said 2.00x; skipped: needs an NVIDIA GPU"


def test_off_is_symmetric():
    assert nb.off(math.e, 1.0).split(" too")[0] == nb.off(1.0, math.e).split(" too")[0]


# What is kept


@pytest.fixture
def stride(naive, tmp_path, monkeypatch):
    """A pair ch9/stride; stride() changes it."""
    monkeypatch.setattr(questions, "ROOT", tmp_path)
    one_pair(tmp_path / "ch9", version("return x + x + w_shift"), name="stride")
    other = version("return w_shift + x + x")
    return lambda: (tmp_path / "ch9/optimized_stride.py").write_text(other, encoding="utf-8")


def kept(*fields):
    return [tuple(each.get(field) for field in fields) for each in progress.predictions()]


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


def test_a_pair_that_changes_asks_anew(stride):
    nb.predict("ch9/stride", ratio=2.5)
    stride()
    nb.predict("ch9/stride", ratio=4.0)
    (first, _), (second, is_locked) = kept("hash", "locked")
    assert first != second and is_locked


@pytest.mark.parametrize(
    ("name", "key", "pair", "found"),
    [
        ("ch9/stride", "ratio", "", "ch9/stride"),
        ("ch9/both", "stride", "", "ch9/stride"),
        ("ch9b/other", "ratio", "stride", "ch9/stride"),
        ("ch9/other", "ratio", "", ""),
        ("ch8/stride", "ratio", "", ""),
    ],
)
def test_a_pair_is_named_by_the_question_by_the_answer_or_apart(name, key, pair, found, stride):
    nb.predict(name, pair=pair, **{key: 2.0})
    assert kept("of", "pair") == [(f"{name} {key}", found)]


def test_nothing_of_the_naive_forecaster_is_kept(naive, store):
    naive()
    said = nb.predict("ch9/stride", ratio=None, resource=None)
    nb.against(said["ratio"], pair_result().rows[0])
    nb.compared(said["resource"], "calls")
    assert not store.exists()


def test_a_question_without_all_answers_keeps_none(naive, store):
    with pytest.raises(predictions.NoPrediction):
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
    nb.off(nb.predict("ch9/stride", ratio=4)["ratio"], np.float32(5.0))
    assert kept("said", "found", "locked")[2] == (4, 5.0, False)


def test_a_row_without_a_ratio_and_a_number_of_nobody_keep_nothing(stride, store):
    nb.compared(8, 9)
    nb.against(2.0, pair_result().rows[0])
    assert not store.exists()
    said = nb.predict("ch9/stride", ratio=2.0)
    nb.against(said["ratio"], Row("optimized", "baseline", "skipped", "needs an NVIDIA GPU"))
    assert kept("found") == [(None,)]


def test_a_range_is_held_against_its_nearest_end():
    said, row = questions.value("sectors", (4, 9)), pair_result().rows[0]  # 2.0
    assert (said, type(said)) == (6, questions.Whole)  # a cell may shift it
    assert nb.compared(said, 5, "sectors") == "you said 4 to 9 sectors, counted 5: your range holds it"
    assert nb.compared(said, 18) == "you said 4 to 9, counted 18: 2.00 times too low"
    below, around = (questions.value("ratio", ends) for ends in ((1.5, 1.9), (1.5, 2.5)))
    assert nb.against(below, row) == f"you said 1.50 to 1.90x, measured {ratio(row)}: 5% too low"
    assert nb.against(around, row) == f"you said 1.50 to 2.50x, measured {ratio(row)}: your range holds it"


@pytest.mark.parametrize("answer", [(3, 1), (0, 1), (1, 2, 3), (1, "2"), (1, math.inf), {"a": 1}, [], 1j])
def test_what_is_no_answer_is_told_in_one_line(answer, naive, store):
    with pytest.raises(predictions.NoPrediction, match="write a number, a word, or a range"):
        nb.predict("ch9/stride", ratio=answer)
    assert not store.exists()


@pytest.mark.parametrize("answer", [8, 2.5, -1, 0, "memory", np.int64(7), np.float64(2.5), float("-inf")])
def test_cells_compute_with_answers_as_with_those_of_nobody(answer, naive):
    said = nb.predict("ch9/stride", ratio=answer)["ratio"]
    assert (said, f"{said}", str(said)) == (answer, f"{answer}", str(answer))
    assert kept("said") == [(answer,)]


@pytest.mark.parametrize("chapter", ["ch0", "ch1", "ch2", "ch3", "ch4", "ch5"])
def test_each_question_of_a_notebook_has_its_naive_answers_and_its_pair(chapter):
    cells = "\n".join(re.sub("(?m)^%.*", "", code) for code in code_of(chapter).values())
    asked = {}
    for call in [node for node in ast.walk(ast.parse(cells)) if isinstance(node, ast.Call)]:
        if ast.unparse(call.func) == "nb.predict":
            answers = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            pair = answers.pop("pair", "")
            asked[call.args[0].value] = set(answers)
            assert (ROOT / chapter / f"baseline_{pair}.py").exists() or not pair, pair
    naive = tomllib.loads((ROOT / "notebooks/forecaster.toml").read_text(encoding="utf-8"))
    assert asked and asked == {name: set(of) for name, of in naive.items() if name.startswith(chapter)}


def test_true_and_false_are_words(naive):
    said = nb.predict("ch9/stride", ratio=False)["ratio"]
    assert nb.compared(said, str(True)) == "you said False: it is True"
    assert kept("said", "found") == [("False", "True")]


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
    assert len(lines) == (fault != "torn") and all(f"your answers are not kept: {store}" in line for line in lines)
    assert nb.against(said["ratio"], pair_result().rows[0]).startswith("you said 2.50x")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == (fault != "torn") and all(f"this figure is not kept: {store}" in line for line in lines)


@pytest.mark.skipif(os.name == "nt", reason="another meaning of modes")
@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may write everywhere")
def test_a_store_that_is_not_the_readers_is_told(naive, store, capsys):
    store.parent.mkdir()
    store.touch(0o400)
    nb.predict("ch9/stride", ratio=2.5)
    assert capsys.readouterr().out == f"your answers are not kept: {store}: cannot be written (Permission denied)\n"
