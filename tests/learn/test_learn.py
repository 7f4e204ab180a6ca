"""learn.py and what it stores: commands, their exit status, a file that survives a kill at any moment."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from samples import refused

from common.cli import learn_commands, learn_text
from common.isolation import worker
from common.learn import answer_gates, learner_log, submission
from common.learn.exercise import ExerciseError, exercises, find
from common.learn.gate import CANNOT, PASSED, UNSURE, Gate, Grade
from common.notebook import questions
from common.notebook.exercise_cells import show
from common.pairs.pair import ROOT
from common.record.files import RecordError

TOML = """
title = "Add"
kind = "diagnose"
pair = ""
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
    for module in ("common.learn.exercise", "common.learn.learner_log", "common.learn.submission"):
        monkeypatch.setattr(f"{module}.WORK", tmp_path / "work")
    monkeypatch.setattr("common.learn.exercise.EXERCISES", tmp_path / "exercises")
    return tmp_path


def run(*words):
    return learn_commands.main([*words])


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


def test_start_says_what_to_read_first(course, capsys):
    toml = course / "exercises/ch1/two/exercise.toml"
    toml.write_text('read = ["section 4", "pair softmax registers"]\n' + toml.read_text())
    assert run("start", "two") == run("start", "one") == 0
    out = capsys.readouterr().out
    assert out.count("Read first") == 1 and "\n\nRead first, in ch1: section 4; pair softmax registers.\n" in out


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
        (course / "work" / f"{learn_commands.current_exercise(SimpleNamespace(id=None)).id}.py").write_text(RIGHT)
        assert run("check") == 0
        capsys.readouterr()
        run("next")
        assert capsys.readouterr().out.startswith(f"{wanted}: Add")


def test_a_failed_check_and_a_hint_of_another_do_not_move_next(course, capsys):
    run("start", "ch1/one")
    run("hint", "ch1/two")
    assert learner_log.next_exercise(exercises()).id == "ch1/two"
    run("check")
    assert learner_log.standings(exercises())["ch1/one"].tries == 1
    run("list")
    assert "open, 1 try" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["list", "start ch2/channels_first", "progress", "hint"])
def test_what_is_printed_fits_a_terminal_with_no_word_broken(words, tmp_path, monkeypatch, capsys):
    texts = []
    for columns in (60, 200):
        for module in ("common.learn.exercise", "common.learn.learner_log", "common.learn.submission"):
            monkeypatch.setattr(f"{module}.WORK", tmp_path / f"work{columns}")
        monkeypatch.setenv("COLUMNS", str(columns))
        run(*words.split())
        texts.append(capsys.readouterr().out.replace("work200", "work60"))
    narrow, wide = texts
    assert max(map(len, narrow.splitlines())) <= 60
    assert set(narrow.replace("─", "").split()) == set(wide.replace("─", "").split())


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("exercise", [each for each in exercises() if "\n|" in each.spec], ids=lambda each: each.id)
def test_a_table_of_a_task_is_shown_whole(exercise, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    learn_text.print_exercise(exercise, "work/its_file.py")
    out = capsys.readouterr().out
    assert "…" not in out and max(map(len, out.splitlines())) <= width
    words = {word for line in exercise.spec.splitlines() if line.startswith("|") for word in line.split()}
    assert {word.strip("`") for word in words} - set(out.split()) <= {"|", "---"}


@pytest.mark.parametrize(
    ("exercise", "most"), [("ch1/ragged", "1.5"), ("ch0/stride", "1.2"), ("ch6/ring", "1.2"), ("ch1/pencil", "")]
)
def test_a_task_names_the_limit_of_its_speed(exercise, most, capsys):
    learn_text.print_exercise(find(exercise), "work/its_file.py")
    told = f"On a GPU your kernel may take at most {most} times as long as the course's solution."
    for shown in (capsys.readouterr().out, show(exercise).data):
        assert (told in " ".join(shown.split())) == bool(most) and ("On a GPU your kernel" in shown) == bool(most)


def test_an_exercise_that_changes_is_open_again(course):
    (course / "work/ch1").mkdir(parents=True)
    (course / "work/ch1/one.py").write_text(RIGHT)
    run("check", "one")
    assert learner_log.standings(exercises())["ch1/one"].passed
    toml = course / "exercises/ch1/one/exercise.toml"
    toml.write_text(toml.read_text().replace("is = 8", "is = 9"))
    assert not learner_log.standings(exercises())["ch1/one"].passed


def test_hints_come_one_after_the_other_and_a_look_at_the_solution_is_noted(course, capsys):
    run("start", "one")
    said = []
    for _ in range(4):
        run("hint")
        said.append(capsys.readouterr().out.strip().rpartition(": ")[2])
    assert said[-3:] == ["Because.", "So.", "So."]
    run("solution")
    assert "noted that you looked" in capsys.readouterr().out
    found = learner_log.standings(exercises())["ch1/one"]
    assert (found.hints, found.seen, found.passed) == (3, True, False)


def test_reset_keeps_what_was_written_each_time(course, capsys):
    (course / "exercises/ch1/one/given_one.py").write_text("GIVEN = 1\n")
    run("start", "one")
    mine, given = course / "work/ch1/one.py", course / "work/ch1/given_one.py"
    start = mine.read_bytes()
    texts = [b"first = 1\n", b"second = '\xff'\r\n", b"third = 3"]
    for text in texts:
        mine.write_bytes(text)
        run("reset")
        assert mine.read_bytes() == start
    copies = [course / f"work/ch1/one.{name}.py" for name in ("before", "before.2", "before.3")]
    assert [copy.read_bytes() for copy in copies] == texts
    assert "your file is kept as work/ch1/one.before.3.py" in capsys.readouterr().out
    given.write_text("GIVEN = 2\n")
    for _ in range(2):  # the second time there is nothing to keep
        run("reset")
    assert given.read_text() == "GIVEN = 1\n"
    assert (course / "work/ch1/given_one.before.py").read_text() == "GIVEN = 2\n"
    assert len(list(mine.parent.iterdir())) == 2 + len(copies) + 1


def test_a_file_whose_copy_cannot_be_kept_is_not_reset(course, monkeypatch, capsys):
    run("start", "one")
    (course / "work/ch1/one.py").write_text(RIGHT)
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    assert run("reset", "one") == 2
    copy = course / "work" / "ch1" / "one.before.py"
    assert capsys.readouterr().err == f"learn.py: {copy}: cannot be written (No space left on device)\n"
    assert (course / "work/ch1/one.py").read_text() == RIGHT


@pytest.mark.parametrize("words", [[], ["start", "nothing"], ["check", "one"], ["predict", "one", "a=1"],
                                   ["nonsense"], ["export", "/nowhere/at/all"]])  # fmt: skip
def test_bad_input_is_one_line_and_status_2(words, course, capsys):
    assert run(*words) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


SHOWN = {"start": "Your file: work/ch1/one.py", "hint": "Why?", "solution": "sectors = 8", "reset": "at the start"}


@pytest.mark.parametrize("command", [*SHOWN, "check"])
def test_what_cannot_be_kept_is_shown_and_said(command, course, capsys, monkeypatch):
    run("start", "one")
    capsys.readouterr()
    (course / "work/progress.jsonl").unlink()
    (course / "work/progress.jsonl").symlink_to("/dev/full")
    monkeypatch.setattr(learner_log, "events", lambda folder=None: iter(()))  # it has no end
    assert run(command, "one") == 1
    out, err = capsys.readouterr()
    assert SHOWN.get(command, "ch1/one: not yet.") in out
    assert err.startswith("learn.py: this is not kept: ") and err.count("\n") == 1


def test_a_line_for_which_there_is_no_room_is_an_error_and_costs_nothing_but_itself(course):
    resource = pytest.importorskip("resource")
    learner_log.add("start", "ch1/one")
    store, before = course / "work/progress.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (store.stat().st_size + 30, before[1]))  # there is for a part of it
    try:
        with refused("cannot be written", store, RecordError):
            learner_log.add("check", "ch1/one")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    learner_log.add("start", "ch1/two")
    assert [event["of"] for event in learner_log.events()] == ["ch1/one", "ch1/two"]


def test_a_kill_at_any_moment_leaves_whole_lines(course):
    code = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from common.learn import learner_log as progress
from common.learn import submission as own
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
    found = list(learner_log.events(course / "work"))
    assert len(found) >= 60 and len(found) >= len(file.read_bytes().splitlines()) - 3


EVENT = {"at": "2026", "what": "predict", "of": "ch1/one", "hash": None, "range": [1, 2], "found": 1.5}
FOREIGN = [
    None, 1, "text", [], {}, [[]], {"at": 1, "what": 2, "of": 3}, {"at": "2026"}, *(
        {**EVENT, **values}
        for values in (
            {"what": []}, {"what": {}}, {"of": None}, {"of": ["ch1/one"]}, {"hash": []}, {"hash": {"a": 1}},
            {"what": "hint", "number": "three"}, {"what": "hint", "number": -9}, {"what": "hint", "number": None},
            {"what": "check", "status": "0"}, {"range": 1}, {"range": []}, {"range": [1]}, {"range": ["a", "b"]},
            {"range": [2, 1, 0]}, {"found": []}, {"found": 10**400}, {"naive": 10**400}, {"naive": []},
            {"bytes": "many"}, {"interval": [1, 2], "pair": 3},
            {"interval": [1, 2], "pair": "**a/b"}, {"interval": [1, 2], "pair": "/"},
            {"range": [0, 0]}, {"interval": [0, 0]}, {"interval": [float("inf")] * 2},
            {"said": [], "range": None}, {"said": {}, "range": None},
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("line", [*map(json.dumps, FOREIGN), "[" * 100_000, '{"at": NaN}', "\xff\x00"], ids=range(39))
def test_a_store_may_hold_anything(line, course, capsys):
    """With the exercise's own hash, where the line has one."""
    store = course / "work/progress.jsonl"
    store.parent.mkdir()
    whole = json.dumps({**EVENT, "hash": find("ch1/one").hash})
    store.write_text(f"{line.replace('null', json.dumps(find('ch1/one').hash))}\n{whole}\n", encoding="latin-1")
    for words in (["list"], ["hint", "one"], ["start", "one"], ["next"], ["progress"], ["export", str(course / "all")]):
        assert run(*words) == 0, capsys.readouterr().err
    assert questions.first_answer("ch1/one") == "ch1/one: you said 1.00 to 2.00, it was 1.50"
    assert whole in (course / "all").read_text().splitlines()[:2]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_store_that_is_no_file_is_named_and_not_waited_for(kind, course, capsys):
    store = course / "work/progress.jsonl"
    store.parent.mkdir()
    {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](store)
    for status, *words in ((2, "list"), (1, "start", "one"), (2, "export", str(course / "all"))):
        assert run(*words) == status
        err = capsys.readouterr().err
        assert err.endswith(f"{store}: is no file: move it away\n") and err.count("\n") == 1
    assert run("check", "one") == 1  # the grade is told
    assert "ch1/one: not yet." in capsys.readouterr().out


def test_brackets_in_messages_are_shown_as_they_are(course, capsys):
    toml = course / "exercises/ch1/one/exercise.toml"
    text = toml.read_text().replace("count the FLOPs", "look at x[offsets] and [/b]")
    toml.write_text(text.replace('"Say it."', '"Of x [n, 4]."'))
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
    (folder / "exercise.toml").write_text(toml + '[answers.ratio]\nfigure = "ch1 batch_size optimized: ratio"\n')
    for answer in ("ratio=6..20", "ratio=1..2"):
        assert run("predict", "ch1/one", answer) == (0 if "20" in answer else 1)
    first, second = learner_log.predictions()
    assert (first["range"], first["locked"], second["locked"]) == ([6.0, 20.0], True, False)
    capsys.readouterr()
    run("progress")
    assert "1 of 1 ranges hold the figure" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "tick"),
    [
        (["6..20"], "one ✓ two"),
        (["6..20", "6..20", "1..2", "6..20"], "one ✓ two"),  # what comes after a range that holds does not count
        (["1..2", "6..20"], "one ✓ at the second try two"),
        (["1..2", "1..2", "2..3", "6..20"], "one ✓ at try 3 two"),
        (["1..2"], "one two"),
    ],
)
def test_a_tick_says_at_which_try_a_prediction_held(answers, tick, course, monkeypatch, capsys):
    monkeypatch.setattr(answer_gates, "newest_figure", lambda _: "8.0x")
    monkeypatch.setattr(worker, "call", lambda function, *arguments, **_: function(*arguments, None))
    folder = course / "exercises/ch1/one"
    toml = (folder / "exercise.toml").read_text().replace("diagnose", "predict")
    toml = toml[: toml.index("[answers.resource]")] + '[answers.ratio]\nfigure = "x"\n'
    (folder / "exercise.toml").write_text(toml)
    for answer in answers:
        run("predict", "one", f"ratio={answer}")
    end = "".join(capsys.readouterr().out.splitlines()[-2:])
    late = tick.partition("✓")[2].removesuffix(" two")
    assert f"one: passed{late}{': the first' if late else '. '}" in end or "✓" not in tick
    run("progress")
    assert capsys.readouterr().out.splitlines()[0].endswith(f" of 2: {tick}")
    run("list")
    listed = "passed" + tick.partition("✓")[2].removesuffix(" two") if "✓" in tick else "open"
    assert f" {listed}, " in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def ratios(course):
    """Its first exercise asks for two ratios and a third that its start does not have."""
    folder = course / "exercises/ch1/one"
    toml = (folder / "exercise.toml").read_text().replace("diagnose", "predict")
    figure = 'figure = "ch1 batch_size optimized: ratio"'
    asked = "\n".join(f"[answers.{name}]\n{figure}" for name in ("a", "b", "c"))
    asked += '\n[answers.d]\nof = ["yes", "no"]\nis = "no"\n'
    (folder / "exercise.toml").write_text(toml[: toml.index("[answers.resource]")] + asked)
    (folder / "start.py").write_text('"""Start.\n\na = None\n"""\n\na = None  # the first\nb = None  # the second\n')
    return course / "work/ch1/one.py"


def test_answers_are_added_and_replaced_by_name_and_the_rest_stays(ratios):
    run("predict", "one", "a=1..2")
    doc = '"""Start.\n\na = None\n"""\n\n'
    assert ratios.read_text() == f"{doc}a = (1.0, 2.0)  # the first\nb = None  # the second\n"
    ratios.write_text(ratios.read_text() + "# my own note: a = 3\n")
    run("predict", "one", "b=3", "a=4..5")
    kept = f"{doc}a = (4.0, 5.0)  # the first\nb = 3.0  # the second\n# my own note: a = 3\n"
    assert ratios.read_text() == kept
    for high in (8.0, 9.0):
        submission.answer(find("ch1/one"), {"c": (7.0, high)})
    assert ratios.read_text() == kept + "c = (7.0, 9.0)\n"
    assert run("predict", "one", "d=no") == 1 and ratios.read_text().endswith("d = 'no'\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = (\n    1,  # low\n    2,\n)  # far\nb = 1\n", "a = (3.0, 4.0)  # far\nb = 1\n"),
        ("a = 1; b = 2", "a = (3.0, 4.0); b = 2"),
        ("a = 1\na = 2\n", "a = 1\na = (3.0, 4.0)\n"),
        ("a, b = 1, 2\n", "a, b = 1, 2\na = (3.0, 4.0)\n"),
        ("a = b = 1\n", "a = b = 1\na = (3.0, 4.0)\n"),
        ("a: tuple = (1, 2)", "a: tuple = (1, 2)\na = (3.0, 4.0)\n"),
        ("a = (1)\n", "a = ((3.0, 4.0))\n"),
        ("# Lücke\r\na = 1  # ü\r\n", "# Lücke\r\na = (3.0, 4.0)  # ü\r\n"),
        ("", "a = (3.0, 4.0)\n"),
    ],
)
def test_an_answer_counts_whatever_the_reader_has_written(before, after, ratios):
    ratios.parent.mkdir(parents=True)
    ratios.write_bytes(before.encode())
    submission.answer(find("ch1/one"), {"a": (3.0, 4.0)})
    assert ratios.read_bytes().decode().removeprefix("\n") == after
    exec(ratios.read_text(), names := {})
    assert names["a"] == (3.0, 4.0)


@pytest.mark.parametrize("value", ["abc", "4..3", "1..2..3", "0..3", "1..inf"])
def test_an_answer_that_is_no_range_is_one_line_and_leaves_the_file(value, ratios, capsys):
    run("start", "one")
    before = ratios.read_text()
    capsys.readouterr()
    assert run("predict", "one", "b=1..2", f"a={value}") == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"learn.py: a={value}: no range of positive numbers, such as 3..4\n")
    assert ratios.read_text() == before


@pytest.mark.parametrize("content", [b"a = (1,\n", b"a = 1\nb = '\xff'\n", b"a = \x00"])
def test_a_file_that_is_not_python_is_left_as_it_is(content, ratios, capsys):
    ratios.parent.mkdir(parents=True)
    ratios.write_bytes(content)
    assert run("predict", "one", "a=3..4") == 2
    err = capsys.readouterr().err
    assert err.startswith("learn.py: work/ch1/one.py: not Python (") and err.count("\n") == 1
    assert "learn.py reset ch1/one" in err and ratios.read_bytes() == content


def test_ctrl_c_in_a_check_ends_it_in_one_line(course, monkeypatch, capsys):
    from common.learn import kernel_gates

    stopped = SimpleNamespace(environment={"interrupted": True}, pairs=[])
    monkeypatch.setattr(kernel_gates, "run_pairs", lambda *_, **__: stopped)
    with pytest.raises(KeyboardInterrupt):
        kernel_gates._result(None)


def test_what_cannot_be_judged_right_is_not_passed():
    known, unknown = Gate("traffic", True, ""), Gate("right", None, "no Triton here")
    assert Grade(None, None, (unknown, known)).status == CANNOT
    assert Grade(None, None, (Gate("right", True, ""), Gate("speed", None, "no GPU"))).status == PASSED
    assert Grade(None, None, (Gate("right", True, ""), Gate("speed", None, "", is_unsure=True))).status == UNSURE


def test_export_replaces_an_earlier_export_and_no_other_file(course, capsys):
    run("start", "one")
    for _ in range(2):
        assert run("export", str(course / "mine.jsonl")) == 0
        assert (course / "mine.jsonl").read_text() == (course / "work/progress.jsonl").read_text()
        run("hint", "one")
    (exercise := course / "work/ch1/one.py").write_text(RIGHT)
    capsys.readouterr()
    assert run("export", str(exercise)) == 2
    err = capsys.readouterr().err
    assert err == f"learn.py: {exercise} is there and no earlier export: name another file\n"
    assert exercise.read_text() == RIGHT and len((course / "mine.jsonl").read_text().splitlines()) == 2


def test_export_to_stdout_shows_it_once_and_the_store_is_not_its_own_target(course, capfd):
    run("start", "one")
    store = course / "work/progress.jsonl"
    text = store.read_text()
    assert run("export", "/dev/stdout") == 0
    out, err = capfd.readouterr()
    assert out.endswith(text) and out.count(text) == 1
    assert run("export", str(course / "work/../work/progress.jsonl")) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n"), store.read_text()) == ("", 1, text)


def test_the_first_prediction_is_locked_and_revisions_are_kept(course):
    for ratio in (2.0, 2.0, 3.0, 3.0, 2.0):  # the same once more is no revision
        learner_log.add("predict", "ch1/x", hash="a", answers={"ratio": ratio})
    learner_log.add("predict", "ch1/x", hash="b", answers={"ratio": 4.0})
    for figure in ({"found": 2.0}, {"found": 3.0, "interval": (2.9, 3.1)}):  # measured anew, and then with its interval
        learner_log.add("predict", "ch1/x", hash="b", answers={"ratio": 4.0}, **figure)
    assert [event["locked"] for event in learner_log.predictions()] == [True, False, False, True]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("minutes = 5", "minuts = 5", "unexpected keyword argument 'minuts'"),
        ('title = "Add"', "", "lacks 'title'"),
        ("order = 2", 'order = "one"', r"Expected `int`, got `str` - at `\$\.order`"),
        ("minutes = 5", 'minutes = "five"', r"Expected `int`, got `str` - at `\$\.minutes`"),
        ("order = 2", "order = 2\nread = [4]", r"Expected `str`, got `int` - at `\$\.read\[0\]`"),
        (
            'kind = "diagnose"',
            'kind = "write"\ngates.sectors = "low"',
            r"Expected `int | float`, got `str` - at .*\.gates\.sect",
        ),
        (
            'kind = "diagnose"',
            'kind = "write"\ngates.spills_at = 3',
            r"Expected `object`, got `int` - at .*gates\.spills_at",
        ),
        (
            'kind = "diagnose"',
            'kind = "write"\ngates.counted_at = [["a"]]',
            r"Expected `str`, got .* - at .*counted_at\[0\]",
        ),
        ('kind = "diagnose"', 'kind = "write"\ngates.sector = 1', "gates: sector: must be of atomics, "),
        ("[answers.sectors]\n", "[answers.sectors]\nfigre = 3\n", "answers.sectors: .* unknown field `figre`"),
        ("[answers.sectors]\n", "[answers.sectors]\nfigure = 3\n", r"answers.sectors: .*got `int` - at `\$.figure`"),
        ("is = 8", "", "answers.sectors: lacks what is right"),
        ('pair = ""', 'pair = "coalesce"', r"pair: there is no ch1/baseline_coalesce\.py$"),
        (
            "order = 2",
            'order = 2\nwrong.a = {says = "sector: y", edits = [["a", "b"]]}',
            "wrong.a: says 'sector': its gates are diagnose, resource, sectors$",
        ),
        (
            'kind = "diagnose"',
            'kind = "write"\nwrong.a = {says = "rigth: y", edits = [["a", "b"]]}',
            "wrong.a: says 'rigth': its gates are code, host, memory, operations, right, sent, speed, traffic$",
        ),
        ("order = 2", 'order = 2\nwrong.a = {says = "x: y", edits = [["a"]]}', "wrong.a: .* length 2, got 1 .*edits"),
        ("order = 2", 'order = 2\nread = ["chapter 1"]', "read: .'chapter 1'.: write 'section 4'"),
        ("order = 2", 'order = 2\nwrong.a = {says = "x", edits = [["a", "b"]]}', "wrong.a: .*says"),
        (
            "order = 2",
            'order = 2\nwrong.a = {says = "x: y", edits = [["a", "b"]], of = "c"}',
            "there is no 'c'",
        ),
    ],
)
def test_a_file_with_an_error_is_named_in_one_line(old, new, said, course):
    toml = course / "exercises/ch1/two/exercise.toml"
    toml.write_text(toml.read_text().replace(old, new))
    with refused(said, f"{toml}: ", ExerciseError):
        exercises()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("three", "there are ch1/one, ch1/two"),
        ("ONE", "did you mean ch1/one$"),
        ("ch1/Two", "did you mean ch1/two$"),
        ("ch7/two", "did you mean ch1/two$"),
        ("ch1/", "did you mean ch1/one, ch1/two$"),
        ("CH1", "did you mean ch1/one, ch1/two$"),
        ("/", "there are ch1/one, ch1/two"),
        ("ch0/mask", "is asked in a notebook, and answered there: notebooks/ch0_triton.ipynb$"),
        ("ch4b/scores", "answered there: notebooks/ch4b_attention.ipynb$"),
    ],
)
def test_an_unknown_exercise_names_those_that_are_near(name, says, course):
    with pytest.raises(ExerciseError, match=says):
        find(name)


@pytest.mark.parametrize("blocked", ["work", "work/ch1"])
@pytest.mark.parametrize("words", [["start", "one"], ["next"], ["reset", "one"], ["list"], ["hint", "one"], ["check"]])
def test_a_file_that_stands_where_a_folder_has_to_be_is_named(blocked, words, course, capsys):
    (place := course / blocked).parent.mkdir(exist_ok=True)
    place.write_text("mine")
    status = run(*words)
    err = capsys.readouterr().err
    if words[0] in ("list", "hint") and blocked == "work/ch1":  # it is not asked for
        assert (status, err) == (0, "")
    elif words[0] != "check" or blocked == "work":
        assert status == 2 and re.fullmatch(rf"learn\.py: {place}: is no folder.*: move it away\n", err)
    assert place.read_text() == "mine" and "Errno" not in err and err.count("\n") <= 1


def test_a_folder_in_the_place_of_the_readers_file_is_named(course, capsys):
    mine = course / "work" / "ch1" / "one.py"
    mine.mkdir(parents=True)
    assert run("reset", "one") == 2
    assert capsys.readouterr().err == f"learn.py: {mine}: cannot be read (Is a directory)\n"


def test_the_first_text_comes_without_torch(course):
    first = "from common.cli import learn_commands as learn; learn.main(['list'])"
    code = f"import sys; {first}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ, check=False).returncode == 0
