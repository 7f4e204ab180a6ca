"""Answers to exercises. Wrong ones ([wrong] in exercise.toml) get their message at their gate; `alternatives` pass."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from common.learn.exercise import Exercise, exercises
from common.learn.gate import NOT_YET, PASSED
from common.learn.grade import grade
from common.show.quoted_figures import newest_figure
from mutants.edits import edited
from mutants.results import Group, Judgement, Wrong, digest

RIGHT = "alternative "  # before a right answer's name


def unrecorded(exercise: Exercise) -> bool:
    """Whether it asks for a figure that is not recorded of the course as it is: then nobody can judge an answer."""
    figures = [newest_figure(answer["figure"]) for answer in exercise.answers.values() if answer.get("figure")]
    return not all(map(is_recorded, figures))


def is_recorded(figure: str) -> bool:
    """Not why there is none: `stale`, `not recorded yet`, or a verdict."""
    return figure[0].isdigit()


def groups() -> Iterator[Group]:
    for exercise in exercises():
        wrong = {
            name: Wrong(digest(exercise.hash, text(exercise, name)), mistake.says)
            for name, mistake in exercise.wrong.items()
        }
        names = [f"{RIGHT}{path.stem}" for path in sorted(exercise.folder.glob("alternatives/*.py"))]
        right = {name: Wrong(digest(exercise.hash, text(exercise, name)), passes="it is right") for name in names}
        yield Group(exercise.id, wrong | right, partial(_judge, exercise))


def text(exercise: Exercise, name: str) -> str:
    """Raises ValueError: its edits do not fit what they change."""
    if name.startswith(RIGHT):
        return (exercise.folder / f"alternatives/{name.removeprefix(RIGHT)}.py").read_text(encoding="utf-8")
    mistake = exercise.wrong[name]
    path = exercise.changed_file(mistake)
    return edited(path.read_text(encoding="utf-8"), mistake.edits, f"{exercise.id}, wrong.{name}")


def _judge(exercise: Exercise, names: list[str], device: str) -> Iterator[Judgement]:
    for name in names:
        yield name, *judge(exercise, text(exercise, name), is_right=name.startswith(RIGHT))


def judge(exercise: Exercise, answer: str, is_right: bool = False) -> tuple[bool, str]:
    """Is an answer caught, and the message of the first gate that it fails, or else of the last.

    One that cannot be judged is not caught; a right one is, for it has to pass.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{exercise.folder.name}.py"
        path.write_text(answer, encoding="utf-8")
        result = grade(exercise, path)
    needed = [gate for gate in result.gates if not gate.is_extra]
    last = next((gate for gate in needed if gate.passed is False), needed[-1])
    is_caught = result.status != PASSED if is_right else result.status == NOT_YET
    return is_caught, f"{last.name}: {last.text}"
