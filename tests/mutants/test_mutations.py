"""Wrong answers to exercises, and mutations of solutions: the committed results are of them as they are."""

from functools import cache

import pytest

pytest.importorskip("triton")

from common.learn.exercise import exercises, find
from mutants import __main__ as tool
from mutants import answers, lessons, mutations, results

pytestmark = pytest.mark.xdist_group("mutations")  # with pytest -n, one process makes them
AGAIN = {  # judged again: exercise -> (mutation, is it caught)
    # a grid with a program too few, at one size of many
    "ch0/distances": ("64 -> 65 in grid = (triton.cdiv(n_rows, 32), triton.cdiv(n_cols, 64))", True),
    "ch1/coalesce": ("256 -> 255 in lengths_kernel[(triton.cdiv(n, 256),)](points, out, n, BLOCK=256)", False),
}


@cache
def groups_of(source):
    return {group.subject: group for group in source.groups()}


@pytest.mark.parametrize("source", [answers, mutations], ids=["answers", "mutations"])
def test_what_was_judged_is_of_each_exercise_as_it_is(source):
    found, left_out = results.load(), {each.id for each in exercises() if answers.unrecorded(each)}
    groups = {name: group for name, group in groups_of(source).items() if name not in left_out}
    assert {name: stale for name, group in groups.items() if (stale := group.stale(found))} == {}, "make mutants"
    assert {name: problems for name, group in groups.items() if (problems := group.problems(found))} == {}
    if left_out:
        pytest.xfail(f"not recorded yet, make record on a GPU: {left_out}")


def test_each_reason_is_about_a_mutation():
    groups, reasons = groups_of(mutations), mutations.equivalent()
    assert {name: [what for what in reasons[name] if not groups[name].wrong[what].passes] for name in reasons} == {
        name: [] for name in reasons
    }


def test_nothing_is_remembered_of_what_is_gone():
    groups = [group for source in (lessons, answers, mutations) for group in groups_of(source).values()]
    keys = [group.key(name) for group in groups for name in group.wrong]
    assert results.load().keys() <= {*keys} and len(keys) == len({*keys})


@pytest.mark.rest
@pytest.mark.parametrize("name", AGAIN)
def test_a_mutation_is_judged_as_it_was(name):
    what, is_caught = AGAIN[name]
    caught, message = answers.judge(find(name), mutations.mutations(find(name))[what])
    assert caught is is_caught is results.load()[groups_of(mutations)[name].key(what)]["caught"], message


@pytest.fixture
def judged(tmp_path, monkeypatch, capsys):
    """judged(caught, *words): the tool's status and lines, where a judge says the former of all mutations."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(tool, "groups", groups_of(mutations).values)

    def of(caught, *words):
        monkeypatch.setattr(answers, "judge", lambda exercise, text: (caught, "right: judged"))
        status = tool.main("ch0/row_max", *words)
        return status, capsys.readouterr().out.splitlines()

    return of


def test_the_tool_ends_with_a_line_for_each_that_is_not_as_it_has_to_be(judged):
    names, reasons = groups_of(mutations)["ch0/row_max"].wrong, mutations.equivalent()["ch0/row_max"]
    status, lines = judged(False)
    assert status == 1 and lines[-1] == f"not as they have to be: {len(names) - len(reasons)}"
    assert sum(results.NO_REASON in line for line in lines) == len(names) - len(reasons)
    status, lines = judged(True)  # the problems are judged again, and they alone
    assert status == 0 and len(lines) == len(names) - len(reasons) + 1
    status, lines = judged(True, "--anew")
    assert status == 1 and [line for line in lines if "a reason is given" in line] == [
        f"ch0/row_max: {what}: a reason is given why it passes, but it is caught" for what in reasons
    ]
