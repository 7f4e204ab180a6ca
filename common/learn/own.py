"""The reader's file: made from the start or from a notebook's cell, graded, and what was said of it noted."""

import ast
import shutil
from pathlib import Path

from common.learn import progress
from common.learn.exercise import WORK, Exercise
from common.learn.gate import Grade, Say
from common.record.files import write_text


def named(path: Path) -> str:
    """From the course's folder on."""
    return path.relative_to(WORK.parent).as_posix()


def begin(exercise: Exercise) -> None:
    """The file as it is at the start, with what is given beside it."""
    exercise.work.parent.mkdir(parents=True, exist_ok=True)
    write_text(exercise.work, exercise.start.read_text(encoding="utf-8"))
    for given in exercise.folder.glob("given*.py"):
        shutil.copy(given, exercise.work.parent)


def from_cell(exercise: Exercise, text: str) -> Path | None:
    """A file of the functions, or the answers, that a notebook's cell has; None if it has none.

    What the start has beside them (imports, `inputs`, what is given) goes before. The reader's file stays as it is.
    """
    start = exercise.start.read_text(encoding="utf-8")
    mine = [node for node in ast.parse(text).body if _names(node)]
    names = {name for node in mine for name in _names(node)}
    if not any(isinstance(node, ast.FunctionDef) for node in mine) and not names & exercise.answers.keys():
        return None
    kept = [node for node in ast.parse(start).body if not _names(node) & names]
    path = exercise.work.parent / "cells" / exercise.work.name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n\n\n".join([*(_source(start, node) for node in kept), *(_source(text, node) for node in mine)]))
    return path


def _names(node: ast.stmt) -> set[str]:
    """What a statement defines: a function or constants; imports and calls define nothing here."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _source(text: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def check(exercise: Exercise, path: Path, say: Say) -> Grade:
    """Grades a file and notes it."""
    from common.learn.grade import grade  # the engine takes a second

    found = grade(exercise, path, say)
    note(found)
    return found


def note(found: Grade) -> None:
    """Keeps a grade. The first range of each question is locked, later ones are kept. Raises RecordError."""
    exercise = found.exercise
    for gate in found.gates:
        if gate.scored:
            low, high, right = gate.scored
            progress.add("predict", f"{exercise.id} {gate.name}", hash=exercise.hash, range=(low, high), found=right)
    progress.add("check", exercise.id, hash=exercise.hash, status=found.status, star=found.star)
