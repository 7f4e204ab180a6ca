"""Exercises in a notebook: what one shows, a grade for the cell that runs or for the reader's file, its picture."""

import re
import runpy
from types import SimpleNamespace

import pytest
from cells import code_of, literals, told

from common.learn import learner_log
from common.learn.exercise import ExerciseError, exercises, find
from common.notebook import exercise_cells, nb
from common.pairs.pair import ROOT


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """cell(text): the cell that runs has this text. What is drawn is in `cell.drawn`; work/ is elsewhere."""
    for module in ("common.learn.exercise", "common.learn.submission"):
        monkeypatch.setattr(f"{module}.WORK", tmp_path / "work")
    inserted = []
    shell = SimpleNamespace(user_ns={"In": [""]}, set_next_input=inserted.append)
    monkeypatch.setattr(exercise_cells, "get_ipython", lambda: shell)

    def runs(text):
        shell.user_ns["In"].append(text)

    runs.drawn, runs.inserted = [], inserted
    monkeypatch.setattr(exercise_cells, "display", runs.drawn.append)
    return runs


def kept():
    return [(event["what"], event["of"], event.get("status")) for event in learner_log.events()]


def titles(cell):
    return [title for figure in cell.drawn for axes in figure.axes if (title := axes.get_title())]


def test_an_exercise_says_what_it_asks_and_shows_its_start_with_a_link_to_the_file():
    shown, _ = nb.learn.show("ch1/pencil").data.split("<details>")
    pencil = find("ch1/pencil")
    assert shown.startswith(f"**Exercise ch1/pencil: {pencil.title}** (count, about {pencil.reader_minutes} minutes). ")
    assert all(text in shown for text in (pencil.objective, pencil.spec.strip(), pencil.start.read_text().strip()))
    for name in pencil.answers:
        assert f"\n- {name}" in shown
    (link,) = re.findall(r"\[The start\]\((.*?)\)", shown)
    assert (ROOT / "notebooks" / link).resolve() == pencil.start and "`nb.learn.edit('ch1/pencil')`" in shown


@pytest.mark.parametrize("called", [nb.learn.show, nb.learn.edit, nb.learn.check])
def test_a_name_that_is_none_is_told_without_a_traceback(called, cell):
    with pytest.raises(ExerciseError) as error:
        called("ch1/pensil")
    assert told(error.value) == "no exercise is called 'ch1/pensil': did you mean ch1/pencil" and not cell.inserted


@pytest.mark.rest
def test_the_start_in_a_cell_is_graded_there(cell, capsys, tmp_path):
    pytest.importorskip("triton")
    nb.learn.edit("ch1/ragged")  # beside it is a file that no notebook can import
    text = (
        cell.inserted[0].replace("TILE=32", "TILE=64").replace("32) * triton.cdiv(n, 32)", "64) * triton.cdiv(n, 64)")
    )
    (tmp_path / "cell.py").write_text(text.replace("nb.learn.check", "str"), encoding="utf-8")
    runpy.run_path(str(tmp_path / "cell.py"), {"nb": nb})
    cell(text)
    nb.learn.check("ch1/ragged")
    out = capsys.readouterr().out
    assert out.startswith("ch1/ragged: grading work/ch1/cells/ragged.py (this cell)\n  right    passed: ")
    assert "  traffic  not yet: 5 launches" in out
    assert "ch1/ragged: not yet. Change the cell and check again" in out


def shown_in(chapter):
    return [text for code in code_of(chapter).values() if "nb.learn.show(" in code for text in literals(code)]


@pytest.mark.parametrize("chapter", ["ch0", "ch1", "ch2", "ch3", "ch4", "ch5", "ch6", "ch7"])
def test_each_exercise_is_shown_once_and_they_are_listed_in_the_order_in_which_the_notebooks_teach(chapter):
    ids = [each.id for each in exercises() if each.chapter == chapter]
    assert shown_in(chapter) == ids, f"notebooks/{chapter}_*.ipynb: a cell `nb.learn.show(ID)` for each, in this order"


def test_the_readers_file_is_made_where_it_lacks_and_graded_where_it_is_there(cell, capsys, store):
    cell("nb.learn.check('ch2/symptoms')")
    nb.learn.check("ch2/symptoms")
    assert capsys.readouterr().out == "work/ch2/symptoms.py is yours: change it, and run this cell again\n"
    symptoms = find("ch2/symptoms")
    assert symptoms.work.read_bytes() == symptoms.start.read_bytes() and not store.exists()
    symptoms.work.write_bytes(symptoms.solution.read_bytes())
    nb.learn.check("ch2/symptoms")
    begin, *gates, end = capsys.readouterr().out.splitlines()
    assert begin == "ch2/symptoms: grading work/ch2/symptoms.py"
    assert len(gates) == len(symptoms.answers) and all(" passed: " in line for line in gates)
    assert end.startswith("ch2/symptoms: passed.") and kept() == [("check", "ch2/symptoms", 0)]
    assert cell.drawn == []


def test_answers_in_a_cell_are_graded_there_and_the_file_is_left_alone(cell, capsys):
    cell("A = 'queue'\nnb.learn.check('ch2/symptoms')")
    nb.learn.check("ch2/symptoms")
    out = capsys.readouterr().out
    assert out.startswith("ch2/symptoms: grading work/ch2/cells/symptoms.py (this cell)\n")
    assert "  A        not yet: queue: no." in out and "`B` has no answer yet" in out
    assert not find("ch2/symptoms").work.exists() and kept() == [("check", "ch2/symptoms", 1)]


def changed(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new)


def test_a_start_shows_its_race_and_is_right_in_one_order_of_its_programs_only():
    pytest.importorskip("triton")
    race = nb.learn.run_start("ch2/barrier", races=True)
    assert race.startswith("a race for parts[0]: program 0 stores to it (line 20), program 2 loads it (line 24), and ")
    assert [nb.learn.run_start("ch2/barrier", order) for order in ("", "reversed")] == ["100.194", "nan"]


def test_a_kernel_is_shown_with_its_most_wasteful_access(cell, capsys):
    pytest.importorskip("triton")
    cell(changed(find("ch1/coalesce").start, "256", "128"))
    nb.learn.check("ch1/coalesce")
    assert "  traffic  not yet: " in capsys.readouterr().out
    assert [title.split(":")[1] for title in titles(cell)] == [" 128 of 512 bytes used, 16 sectors fetched"]
