"""Wrong answers to exercises, from [wrong] in exercise.toml: each has to get its message at its gate."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from common.learn.exercise import Exercise, exercises
from common.learn.gate import NOT_YET
from common.learn.grade import grade
from mutants.edits import edited
from mutants.results import Group, Judgement, Wrong, digest


def groups() -> Iterator[Group]:
    for exercise in exercises():
        wrong = {
            name: Wrong(digest(exercise.hash, text(exercise, name)), mistake.says)
            for name, mistake in exercise.wrong.items()
        }
        yield Group(exercise.id, wrong, partial(_judge, exercise))


def text(exercise: Exercise, name: str) -> str:
    """Raises ValueError: its edits do not fit what they change."""
    mistake = exercise.wrong[name]
    path = exercise.changed_file(mistake)
    return edited(path.read_text(encoding="utf-8"), mistake.edits, f"{exercise.id}, wrong.{name}")


def _judge(exercise: Exercise, names: list[str], device: str) -> Iterator[Judgement]:
    for name in names:
        yield name, *judge(exercise, text(exercise, name))


def judge(exercise: Exercise, answer: str) -> tuple[bool, str]:
    """Is an answer caught, and the message of the first gate that it fails, or else of the last."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{exercise.folder.name}.py"
        path.write_text(answer, encoding="utf-8")
        result = grade(exercise, path)
    needed = [gate for gate in result.gates if not gate.is_extra]
    last = next((gate for gate in needed if gate.passed is False), needed[-1])
    return result.status == NOT_YET, f"{last.name}: {last.text}"
