"""Mutations of solutions: what was judged is of the exercises as they are, and each that passes has its reason."""

import tomllib

import pytest

pytest.importorskip("triton")

from common.learn.exercise import exercises, find
from learn import mutations

KNOWN = exercises()
AGAIN = {  # judged again: exercise -> (mutation, is it caught)
    "ch0/distances": ("line 47: 64 -> 65", True),  # a grid with a program too few, at one size of many
    "ch1/coalesce": ("line 41: 256 -> 255", False),
}


@pytest.mark.parametrize("exercise", KNOWN, ids=lambda each: each.id)
def test_what_was_judged_is_of_the_exercise_as_it_is(exercise):
    said = mutations.results().get(exercise.id, {})
    assert said.get("hash") == exercise.hash, "it has changed since its mutations were judged: run `make mutants`"
    assert said["mutations"].keys() == mutations.mutations(exercise).keys()


@pytest.mark.parametrize("exercise", KNOWN, ids=lambda each: each.id)
def test_each_mutation_that_passes_has_its_reason(exercise):
    said, reasons = mutations.results()[exercise.id]["mutations"], mutations.equivalent(exercise)
    assert mutations.open_ones(exercise, said, reasons) == []
    assert {what: each["equivalent"] for what, each in said.items() if not each["caught"]} == reasons


def test_each_reason_is_a_sentence_of_an_exercise():
    table = tomllib.loads(mutations.EQUIVALENT.read_text(encoding="utf-8"))
    assert table.keys() <= {each.id for each in KNOWN}
    assert all(reason.endswith(".") and len(reason) > 40 for reasons in table.values() for reason in reasons.values())


@pytest.mark.rest
@pytest.mark.parametrize("name", AGAIN)
def test_a_mutation_is_judged_as_it_was(name):
    exercise, (what, is_caught) = find(name), AGAIN[name]
    caught, last = mutations.judge(exercise, mutations.mutations(exercise)[what])
    assert caught is is_caught is mutations.results()[name]["mutations"][what]["caught"], last


@pytest.fixture
def tool(tmp_path, monkeypatch, capsys):
    """tool(caught, reasons): its status and last lines for ch0/row_max, where a judge says the former of all."""

    def of(caught, reasons):
        monkeypatch.setattr(mutations, "RESULTS", tmp_path / "mutations.json")
        monkeypatch.setattr(mutations, "EQUIVALENT", tmp_path / "equivalent.toml")
        monkeypatch.setattr(mutations, "judge", lambda exercise, text: (caught, "right: judged"))
        text = "".join(f'"{what}" = "So it is."\n' for what in reasons)
        (tmp_path / "equivalent.toml").write_text(f"['ch0/row_max']\n{text}")
        status = mutations.main("ch0/row_max")
        return status, [line for line in capsys.readouterr().out.splitlines() if "equivalent.toml" in line]

    return of


def test_the_tool_ends_with_a_line_for_each_mutation_that_is_not_explained(tool):
    names = [*mutations.mutations(find("ch0/row_max"))]
    assert tool(False, names) == (0, [])
    status, lines = tool(False, names[2:])
    assert status == 1 and sorted(line.split(": passes")[0] for line in lines) == sorted(
        f"ch0/row_max: {name}" for name in names[:2]
    )


def test_a_reason_for_what_is_caught_is_not_left_standing(tool):
    name = next(iter(mutations.mutations(find("ch0/row_max"))))
    assert tool(True, []) == (0, [])
    status, lines = tool(True, [name])
    assert status == 1 and "has a reason, but none such passes" in lines[0]
