"""learn.py and what it stores: commands, their exit status, a file that survives a kill at any moment."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from samples import refused

from common.cli import learn
from common.learn import progress
from common.learn.exercise import ExerciseError, exercises, find
from common.learn.gate import CANNOT, PASSED, UNSURE, Gate, Grade
from common.learn.scores import Scored, off, sureness
from common.pairs.pair import ROOT

TOML = """
title = "Add"
kind = "diagnose"
pair = "add"
objective = "Say it."
spec = "A spec."
hints = ["Why?", "Because.", "So."]
minutes = 5
order = {order}
[answers.resource]
of = ["memory", "arithmetic"]
is = "memory"
says.arithmetic = "count the FLOPs"
[answers.sectors]
is = 8
"""
RIGHT = 'resource = "memory"\nsectors = 8\n'


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two exercises, ch1/one and ch1/two, and a work folder of its own."""
    for order, name in enumerate(("one", "two"), 1):
        folder = tmp_path / "exercises/ch1" / name
        folder.mkdir(parents=True)
        (folder / "exercise.toml").write_text(TOML.format(order=order))
        (folder / "start.py").write_text('"""Start."""\n\nresource = None\nsectors = None\n')
        (folder / "solution.py").write_text('"""Solution."""\n\n' + RIGHT)
    for module in ("common.learn.exercise", "common.learn.progress", "common.learn.own"):
        monkeypatch.setattr(f"{module}.WORK", tmp_path / "work")
    monkeypatch.setattr("common.learn.exercise.EXERCISES", tmp_path / "exercises")
    return tmp_path


def run(*words):
    return learn.main([*words])


def events(course):
    return [json.loads(line) for line in (course / "work/progress.jsonl").read_text().splitlines()]


def test_next_makes_the_file_and_does_not_replace_it(course, capsys):
    assert run("next") == 0
    assert "ch1/one" in capsys.readouterr().out
    mine = course / "work/ch1/one.py"
    assert mine.read_text() == (course / "exercises/ch1/one/start.py").read_text()
    mine.write_text(RIGHT)
    assert run("start", "one") == 0
    assert mine.read_text() == RIGHT


def test_a_file_is_graded_and_next_goes_on(course, capsys):
    run("next")
    assert run("check") == 1
    mine = course / "work/ch1/one.py"
    mine.write_text(RIGHT.replace("memory", "arithmetic"))
    assert run("check") == 1
    assert "count the FLOPs" in capsys.readouterr().out
    mine.write_text(RIGHT)
    assert run("check") == 0
    assert "grading work/ch1/one.py" in capsys.readouterr().out
    run("next")
    assert "ch1/two" in capsys.readouterr().out


def test_start_without_an_id_stays_at_an_exercise_until_it_is_passed(course, capsys):
    for _ in range(2):
        assert run("start") == 0
        assert capsys.readouterr().out.startswith("ch1/one: Add")
    (course / "work/ch1/one.py").write_text(RIGHT)
    assert run("check") == 0
    capsys.readouterr()
    assert run("start") == 0
    assert capsys.readouterr().out.startswith("ch1/two: Add")


def test_next_goes_on_from_the_last_one_and_comes_back_to_what_was_skipped(course, capsys):
    for name in ("ch2/three", "ch1/four"):
        shutil.copytree(course / "exercises/ch1/two", course / "exercises" / name)
    toml = course / "exercises/ch1/four/exercise.toml"
    toml.write_text(toml.read_text().replace("order = 2", "order = 3"))
    run("start", "ch1/two")
    for wanted in ("ch1/four", "ch2/three", "ch1/one", "ch2/three"):  # the last one is passed: it stays
        (course / "work" / f"{learn.run.at_hand(SimpleNamespace(id=None)).id}.py").write_text(RIGHT)
        assert run("check") == 0
        capsys.readouterr()
        run("next")
        assert capsys.readouterr().out.startswith(f"{wanted}: Add")


def test_next_says_what_stays_open(course, capsys):
    run("next")
    assert "stays open" not in capsys.readouterr().out
    run("next")
    out = capsys.readouterr().out
    assert out.startswith("ch1/two: Add") and "ch1/one stays open: `python learn.py start ch1/one` goes back" in out
    run("next")
    assert capsys.readouterr().out.startswith("ch1/one: Add")


def test_a_failed_check_and_a_hint_of_another_do_not_move_next(course, capsys):
    run("start", "ch1/one")
    run("hint", "ch1/two")
    assert progress.upcoming(exercises()).id == "ch1/two"
    run("check")
    assert progress.standings(exercises())["ch1/one"].tries == 1
    run("list")
    assert "open, 1 try" in capsys.readouterr().out


def test_help_says_where_next_goes_on(capsys):
    with pytest.raises(SystemExit):
        learn.main(["next", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "after the one that you started or passed last; those you skipped come at the end" in out


def test_a_question_without_words_is_not_shown(course, capsys):
    run("start", "one")
    out = capsys.readouterr().out
    assert "One of: memory, arithmetic." in out and "sectors:" not in out


def test_an_exercise_that_changes_is_open_again(course):
    (course / "work/ch1").mkdir(parents=True)
    (course / "work/ch1/one.py").write_text(RIGHT)
    run("check", "one")
    assert progress.standings(exercises())["ch1/one"].passed
    toml = course / "exercises/ch1/one/exercise.toml"
    toml.write_text(toml.read_text().replace("is = 8", "is = 9"))
    assert not progress.standings(exercises())["ch1/one"].passed


def test_hints_come_one_after_the_other_and_a_look_at_the_solution_is_noted(course, capsys):
    run("start", "one")
    said = []
    for _ in range(4):
        run("hint")
        said.append(capsys.readouterr().out.strip().rpartition(": ")[2])
    assert said[-3:] == ["Because.", "So.", "So."]
    run("solution")
    assert "noted that you looked" in capsys.readouterr().out
    found = progress.standings(exercises())["ch1/one"]
    assert (found.hints, found.seen, found.passed) == (3, True, False)


def test_reset_keeps_what_was_written(course):
    run("start", "one")
    mine = course / "work/ch1/one.py"
    mine.write_text(RIGHT)
    run("reset")
    assert mine.read_text() != RIGHT and (course / "work/ch1/one.before.py").read_text() == RIGHT


@pytest.mark.parametrize("words", [[], ["start", "nothing"], ["check", "one"], ["predict", "one", "a=1"],
                                   ["nonsense"], ["export", "/nowhere/at/all"]])  # fmt: skip
def test_bad_input_is_one_line_and_status_2(words, course, capsys):
    assert run(*words) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_torn_line_costs_nothing_but_itself(course):
    progress.add("start", "ch1/one")
    with (course / "work/progress.jsonl").open("ab") as file:
        file.write(b'{"at": "2026", "wha')  # a full disk, a power cut
    progress.add("start", "ch1/two")
    assert [event["of"] for event in progress.events()] == ["ch1/one", "ch1/two"]


def test_a_kill_at_any_moment_leaves_whole_lines(course):
    code = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from common.learn import progress
while True:
    progress.add("check", "ch1/one", folder=Path({str(course / "work")!r}), filler="x" * 5000)
"""
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code])
        file = course / "work/progress.jsonl"
        before = file.stat().st_size if file.exists() else 0
        while not file.exists() or file.stat().st_size < before + 100_000:
            assert process.poll() is None
        process.kill()
        process.wait()
    found = list(progress.events(course / "work"))
    assert len(found) >= 60 and len(found) >= len(file.read_bytes().splitlines()) - 3


def test_brackets_in_messages_are_shown_as_they_are(course, capsys):
    toml = course / "exercises/ch1/one/exercise.toml"
    toml.write_text(
        toml.read_text()
        .replace("count the FLOPs", "look at x[offsets] and [/b]")
        .replace('"Say it."', '"Of x [n, 4]."')
    )
    run("start", "one")
    (course / "work/ch1/one.py").write_text(RIGHT.replace("memory", "arithmetic"))
    assert run("check") == 1
    out = capsys.readouterr().out
    assert "Of x [n, 4]." in out and "look at x[offsets] and [/b]" in out


def test_a_fault_in_another_exercise_stops_none_that_is_named(course):
    (course / "exercises/ch1/two/exercise.toml").write_text("title = ")
    assert find("ch1/one").title == "Add"
    assert run("list") == 2


def test_a_range_is_scored_and_its_first_answer_locked(course, monkeypatch, capsys):
    folder = course / "exercises/ch1/one"
    toml = (folder / "exercise.toml").read_text()
    toml = toml[: toml.index("[answers.resource]")].replace("diagnose", "predict")
    (folder / "exercise.toml").write_text(toml + '[answers.ratio]\nfigure = "ch1 coalescing optimized: ratio"\n')
    for answer in ("ratio=6..20", "ratio=1..2"):
        assert run("predict", "ch1/one", answer) == (0 if "20" in answer else 1)
    first, second = progress.predictions()
    assert (first["range"], first["locked"], second["locked"]) == ([6.0, 20.0], True, False)
    capsys.readouterr()
    run("progress")
    assert "1 of 1 ranges hold the figure" in capsys.readouterr().out


def test_ctrl_c_in_a_check_ends_it_in_one_line(course, monkeypatch, capsys):
    from common.learn import kernels

    stopped = SimpleNamespace(environment={"interrupted": True}, pairs=[])
    monkeypatch.setattr(kernels, "run_pairs", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        kernels._result(None)


def test_what_cannot_be_judged_right_is_not_passed():
    known, unknown = Gate("traffic", True, ""), Gate("right", None, "no Triton here")
    assert Grade(None, None, (unknown, known)).status == CANNOT
    assert Grade(None, None, (Gate("right", True, ""), Gate("speed", None, "no GPU"))).status == PASSED
    assert Grade(None, None, (Gate("right", True, ""), Gate("speed", None, "", is_unsure=True))).status == UNSURE


def test_export_shows_what_it_writes(course, capsys):
    run("start", "one")
    capsys.readouterr()
    assert run("export", str(course / "mine.jsonl")) == 0
    out = capsys.readouterr().out
    assert out == (course / "mine.jsonl").read_text() == (course / "work/progress.jsonl").read_text()


def test_the_first_prediction_is_locked_and_revisions_are_kept(course):
    for ratio in (2.0, 2.0, 3.0, 3.0, 2.0):  # the same once more is no revision
        progress.add("predict", "ch1/x", hash="a", answers={"ratio": ratio})
    progress.add("predict", "ch1/x", hash="b", answers={"ratio": 4.0})
    assert [event["locked"] for event in progress.predictions()] == [True, False, False, True]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("minutes = 5", "minuts = 5", "unexpected keyword argument 'minuts'"),
        ('title = "Add"', "", "lacks 'title'"),
        ("order = 2", 'order = "one"', "order must be a whole number"),
        ('kind = "diagnose"', 'kind = "write"\ngates.sectors = "low"', "gates: sectors must be a number"),
        ('kind = "diagnose"', 'kind = "write"\ngates.spills_at = 3', "spills_at must be a table of sizes"),
        ('kind = "diagnose"', 'kind = "write"\ngates.spills_at.check = "x"', "gates: check must be a number"),
    ],
)
def test_a_file_with_an_error_is_named_in_one_line(old, new, said, course):
    toml = course / "exercises/ch1/two/exercise.toml"
    toml.write_text(toml.read_text().replace(old, new))
    with refused(said, f"{toml}: ", ExerciseError):
        exercises()


def test_an_unknown_exercise_names_those_that_are_near(course):
    with pytest.raises(ExerciseError, match="there are ch1/one, ch1/two"):
        find("three")


def test_interval_scores_and_sureness():
    assert Scored("a", 1.0, 2.0, 1.5).score == pytest.approx(0.6931, abs=1e-4)
    assert Scored("a", 1.0, 2.0, 4.0).score == pytest.approx(0.6931 + 20 * 0.6931, abs=1e-3)
    assert "fewer than 20" in sureness([Scored("a", 1, 2, 1.5)] * 19)
    assert "too narrow" in sureness([Scored("a", 1, 2, 1.5)] * 10 + [Scored("a", 1, 2, 3)] * 10)
    assert "too wide" in sureness([Scored("a", 1, 2, 1.5)] * 40)
    assert "That fits" in sureness([Scored("a", 1, 2, 1.5)] * 27 + [Scored("a", 1, 2, 3)] * 3)


def test_off_knows_both_sides():
    assert "low" in off(1.0, 3.0) and "high" in off(3.0, 1.0) and off(2, 2) == "right"


def test_the_first_text_comes_without_torch(course):
    code = "import sys; from common.cli import learn; learn.main(['list']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ, check=False).returncode == 0
