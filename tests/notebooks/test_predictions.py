"""A prediction is asked for before a result is shown, and answered in factors."""

import ast
import re
import tomllib
from dataclasses import replace

import pytest
from cells import code_of, told
from samples import pair_result

from common.notebook import nb, questions
from common.pairs.pair import ROOT
from common.record.outcome import Verdict
from common.show.tables import ratio


def test_a_run_ends_in_one_line_where_an_answer_is_missing(naive):
    with pytest.raises(questions.NoPrediction, match=r"replace None by your answer \(ratio\)") as error:
        nb.predict("ch9/stride", ratio=None, resource="calls")
    assert told(error.value) == str(error.value)


def test_the_naive_forecaster_answers_what_is_missing_and_says_so(naive, capsys):
    naive()
    assert nb.predict("ch9/stride", ratio=None, resource="calls") == {"ratio": 8.0, "resource": "calls"}
    assert capsys.readouterr().out == "No reader answered here. The naive forecaster says: ratio = 8.0\n"


@pytest.mark.parametrize(
    ("said", "found", "says"),
    [
        (8, 8, "you said 8 sectors, counted 8: right"),
        (1.88, 2.0, "you said 1.88 sectors, counted 2: 6% too low"),
        (1.0, 1.82, "you said 1 sectors, counted 1.82: 1.82 times too low"),
        (10_241, 641, "you said 10,241 sectors, counted 641: 16.0 times too high"),
        (0, 3, "you said 0 sectors, counted 3: wrong"),
        (8_191, 8_192, "you said 8,191 sectors, counted 8,192: 1 too low"),
        (8_193.5, 8_192.5, "you said 8,193.5 sectors, counted 8,192.5: right to 0.0%"),
        (0, 0, "you said 0 sectors, counted 0: right"),
    ],
)  # fmt: skip
def test_counts_are_compared_as_factors(said, found, says):
    assert nb.compared(said, found, "sectors") == says


@pytest.mark.parametrize(
    ("said", "judged"), [(1.5, "1.33 times too low"), (1.97, "right"), (3.0, "1.50 times too high")]
)
def test_a_ratio_is_judged_by_the_interval_and_the_margin(said, judged):
    row = pair_result().rows[0]
    assert nb.against(said, row) == f"you said {said:#.3g}x, measured {ratio(row)}: {judged}"


def test_a_range_is_held_against_its_nearest_end():
    said, row = questions.value("sectors", (4, 9)), pair_result().rows[0]  # 2.0
    assert (said, type(said)) == (6, questions.Whole)  # a cell may shift it
    assert nb.compared(said, 5, "sectors") == "you said 4 to 9 sectors, counted 5: your range holds it"
    assert nb.compared(said, 18) == "you said 4 to 9, counted 18: 2.00 times too low"
    below, around = (questions.value("ratio", ends) for ends in ((1.5, 1.9), (1.5, 2.5)))
    assert nb.against(below, row) == f"you said 1.50 to 1.90x, measured {ratio(row)}: 5% too low"
    assert nb.against(around, row) == f"you said 1.50 to 2.50x, measured {ratio(row)}: your range holds it"
    meets = questions.value("ratio", (1.5, 1.97))  # as 1.97 alone is right
    assert nb.against(meets, row) == f"you said 1.50 to 1.97x, measured {ratio(row)}: your range meets the interval"


def test_what_is_unsure_is_not_scored(monkeypatch):
    kept = []
    monkeypatch.setattr(questions, "keep_figure", lambda *args, **beside: kept.append(args))
    row = replace(pair_result().rows[0], verdict=Verdict.UNSURE)
    assert nb.compared("same", "unsure") == "you said same: the measurement is unsure, so nothing is scored"
    assert nb.against(2.0, row).endswith(": nothing is scored, because the measurement is unsure")
    assert kept == [] and nb.compared("same", "faster") == "you said same: it is faster" and kept


@pytest.mark.parametrize("chapter", ["ch0", "ch1", "ch2", "ch3", "ch4", "ch5", "ch6", "ch7"])
def test_each_question_of_a_notebook_has_its_naive_answers_and_its_pair(chapter):
    cells = "\n".join(re.sub("(?m)^%.*", "", code) for code in code_of(chapter).values())
    asked, nodes = {}, [*ast.walk(ast.parse(cells))]
    values = {ast.unparse(node.targets[0]): node.value for node in nodes if isinstance(node, ast.Assign)}
    for call in [node for node in nodes if isinstance(node, ast.Call)]:
        if ast.unparse(call.func) == "nb.predict":
            given = {each.arg: values.get(ast.unparse(each.value), each.value) for each in call.keywords}
            answers = {name: ast.literal_eval(value) for name, value in given.items()}
            pair, again = answers.pop("pair", ""), answers.pop("again", ())
            assert {tuple(of.split()) for of in again} <= {(name, key) for name, keys in asked.items() for key in keys}
            asked[call.args[0].value] = set(answers)
            assert (ROOT / chapter / f"baseline_{pair}.py").exists() or not pair, pair
    naive = tomllib.loads((ROOT / "notebooks/forecaster.toml").read_text(encoding="utf-8"))
    assert asked and asked == {name: set(of) for name, of in naive.items() if name.startswith(chapter)}


def test_the_term_that_was_missed_is_named():
    row = pair_result().rows[0]  # 2.0
    terms = {"the bytes": 1.0, "the calls": 16.0, "both": 2.1}
    *_, text = nb.against(15.0, row, terms).splitlines()
    assert text == "nearest to the measured speedup: both (2.10x); nearest to yours: the calls (16.0x)"
    *_, near, text = nb.against(1.1, row, {"the bytes": 1.0}).splitlines()
    assert near == "nearest to the measured speedup: the bytes (1.00x)"
    assert text == "The nearest explanation gives 1.00x; a factor of 2.00 is still missing."
    *_, tie = nb.against(2.0, row, {"the bytes": 1.0, "the sectors": 3.99}).splitlines()[:2]
    assert tie == "nearest to the measured speedup: the sectors (3.99x) and the bytes (1.00x), which miss it alike"
    assert nb.against(5.0, row, {"the calls": 16.0}).endswith("gives 16.0x, 8.00 times too much.")
