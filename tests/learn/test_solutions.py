"""The exercises' own solutions, graded and kept: each once, again where its exercise has changed."""

import json
from types import SimpleNamespace

import pytest
from samples import refused

from common.learn.exercise import find
from common.learn.gate import CANNOT, NOT_YET, PASSED, Gate, Grade
from tools import solutions
from tools.__main__ import main

INFO = {"kind": "cuda", "name": "A made-up GPU"}
WANTED = [find("ch1/pencil"), find("ch1/referee")]


@pytest.fixture
def grades(monkeypatch, tmp_path):
    """What `grade` was called with; each passes, with a gate that this machine cannot judge."""
    asked = []

    def grade(exercise, path):
        asked.append((exercise.id, path.name))
        return Grade(
            exercise, path, (Gate("right", True, "yes"), Gate("speed", None, "no GPU"), Gate("star", True, "", True))
        )

    monkeypatch.setattr(solutions, "grade", grade)
    monkeypatch.setattr("common.record.files.RECORDED", tmp_path)
    return asked


def test_each_is_graded_once_and_kept_with_what_its_gates_say(grades, tmp_path):
    found = solutions.record(WANTED[:1], INFO)
    assert solutions.record(WANTED, INFO)[:1] == found
    assert grades == [("ch1/pencil", "solution.py"), ("ch1/referee", "solution.py")]
    kept = solutions.FORMAT.load(tmp_path / "a_made_up_gpu/exercises.json")
    assert [(each.id, each.hash, each.status) for each in kept.solutions] == [(e.id, e.hash, PASSED) for e in WANTED]
    assert [gate["name"] for gate in kept.solutions[0].gates] == ["right", "speed"]
    assert kept.solutions[0].line.startswith("ch1/pencil: right passed, speed not judged; no GPU (")


def test_an_exercise_that_has_changed_or_failed_is_graded_again_and_another_device_is_another(grades, tmp_path):
    solutions.record(WANTED, INFO)
    path = tmp_path / "a_made_up_gpu/exercises.json"
    data = json.loads(path.read_text())
    data["solutions"][0]["hash"] = "another"
    data["solutions"][1]["status"] = NOT_YET
    path.write_text(json.dumps(data))
    solutions.record(WANTED, INFO)
    solutions.record(WANTED[:1], {**INFO, "name": "Another"})
    assert [name for name, _ in grades] == ["ch1/pencil", "ch1/referee", "ch1/pencil", "ch1/referee", "ch1/pencil"]


def test_a_bad_file_of_another_device_does_no_harm_and_one_of_this_device_is_not_replaced(grades, tmp_path):
    for name in ("another", "a_made_up_gpu"):
        (tmp_path / name).mkdir()
    (tmp_path / "another/exercises.json").write_text("no JSON")
    solutions.record(WANTED[:1], INFO)
    own = tmp_path / "a_made_up_gpu/exercises.json"
    own.write_text("no JSON")
    with refused("not JSON"):
        solutions.record(WANTED, INFO)
    assert own.read_text() == "no JSON" and len(grades) == 1


@pytest.mark.parametrize(
    ("statuses", "status", "said"),
    [
        ([PASSED, PASSED], 0, "2 of 2 solutions passed"),
        ([PASSED, CANNOT], 0, "1 of 2 solutions passed, 1 cannot be graded here"),
        ([PASSED, NOT_YET], 1, "1 of 2 solutions passed"),
    ],
)
def test_a_solution_that_does_not_pass_is_a_failure(statuses, status, said, monkeypatch, capsys):
    left = iter(statuses)
    monkeypatch.setattr(solutions, "grade_solution", lambda each: SimpleNamespace(status=next(left)))
    assert main(["solutions", "ch1/pencil", "ch1/referee"]) == status
    assert capsys.readouterr().out.splitlines() == [said]
