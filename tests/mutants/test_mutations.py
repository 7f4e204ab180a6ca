"""Wrong answers to exercises, and mutations of solutions: the committed results are of them as they are."""

import pytest

pytest.importorskip("triton")

from common.learn.exercise import find
from mutants import __main__ as tool
from mutants import answers, mutations, results

ANSWERS, MUTATIONS = ({group.subject: group for group in source.groups()} for source in (answers, mutations))
AGAIN = {  # judged again: exercise -> (mutation, is it caught)
    # a grid with a program too few, at one size of many
    "ch0/distances": ("64 -> 65 in grid = (triton.cdiv(n_rows, 32), triton.cdiv(n_cols, 64))", True),
    "ch1/coalesce": ("256 -> 255 in lengths_kernel[(triton.cdiv(n, 256),)](points, out, n, BLOCK=256)", False),
}


@pytest.mark.parametrize("groups", [ANSWERS, MUTATIONS], ids=["answers", "mutations"])
@pytest.mark.parametrize("name", ANSWERS)
def test_what_was_judged_is_of_the_exercise_as_it_is(name, groups):
    assert groups[name].stale(results.load()) == [], "changed since: make mutants"
    assert groups[name].problems(results.load()) == {}


def test_each_reason_is_a_sentence_about_a_mutation():
    reasons = mutations.equivalent()
    assert {(name, what) for name in reasons for what in reasons[name]} == {
        (name, what) for name, group in MUTATIONS.items() for what, wrong in group.wrong.items() if wrong.passes
    }
    assert all(reason.endswith(".") and len(reason) > 40 for group in reasons.values() for reason in group.values())


def test_nothing_is_remembered_of_what_is_gone():
    keys = {group.key(name) for group in tool.groups() for name in group.wrong}
    assert results.load().keys() <= keys and len(keys) == sum(len(group.wrong) for group in tool.groups())


@pytest.mark.rest
@pytest.mark.parametrize("name", AGAIN)
def test_a_mutation_is_judged_as_it_was(name):
    what, is_caught = AGAIN[name]
    caught, message = answers.judge(find(name), mutations.mutations(find(name))[what])
    assert caught is is_caught is results.load()[MUTATIONS[name].key(what)]["caught"], message


@pytest.fixture
def judged(tmp_path, monkeypatch, capsys):
    """judged(caught, *words): the tool's status and lines, where a judge says the former of all mutations."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(tool, "groups", lambda: [*mutations.groups()])

    def of(caught, *words):
        monkeypatch.setattr(answers, "judge", lambda exercise, text: (caught, "right: judged"))
        status = tool.main("ch0/row_max", *words)
        return status, capsys.readouterr().out.splitlines()

    return of


def test_the_tool_ends_with_a_line_for_each_that_is_not_as_it_has_to_be(judged):
    names, reasons = MUTATIONS["ch0/row_max"].wrong, mutations.equivalent()["ch0/row_max"]
    status, lines = judged(False)
    assert status == 1 and lines[-1] == f"not as they have to be: {len(names) - len(reasons)}"
    assert sum(results.NO_REASON in line for line in lines) == len(names) - len(reasons)
    status, lines = judged(True)  # the problems are judged again, and they alone
    assert status == 0 and len(lines) == len(names) - len(reasons) + 1
    status, lines = judged(True, "--anew")
    assert status == 1 and [line for line in lines if "a reason is given" in line] == [
        f"ch0/row_max: {what}: a reason is given why it passes, but it is caught" for what in reasons
    ]
