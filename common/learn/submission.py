"""The reader's file: made from the start or from a notebook's cell, graded, and what was said of it noted."""

import ast
import os
from itertools import chain, count
from pathlib import Path
from typing import Any

from common.learn import learner_log
from common.learn.exercise import WORK, Exercise
from common.learn.gate import Grade
from common.record.files import RecordError, file_errors, make_folder, write_file, write_text


def course_path(path: Path) -> str:
    """From the course's folder on."""
    return path.relative_to(WORK.parent).as_posix()


def begin(exercise: Exercise) -> None:
    """The file as it is at the start, with what is given beside it. What the reader made of them is kept, and named."""
    _put(exercise.start, exercise.work)
    for given in exercise.folder.glob("given*.py"):
        _put(given, exercise.work.with_name(given.name))


def _put(source: Path, path: Path) -> None:
    start = source.read_bytes()
    with file_errors(path, "read"):
        changed = path.read_bytes() if path.exists() else start
    if changed != start:
        names = chain([".before.py"], (f".before.{number}.py" for number in count(2)))
        copy = next(name for name in map(path.with_suffix, names) if not os.path.lexists(name))
        write_file(copy, lambda file: file.write(changed))
        print(f"your file is kept as {course_path(copy)}")
    make_folder(path.parent)
    write_file(path, lambda file: file.write(start))


def answer(exercise: Exercise, values: dict[str, Any]) -> None:
    """Answers in the reader's file, each in place of the earlier one; all else in it stays. Raises RecordError."""
    if not exercise.work.exists():
        begin(exercise)
    content = exercise.work.read_bytes()
    try:
        for name, value in values.items():
            content = _with_value(content, name, repr(value).encode())
    except (SyntaxError, ValueError) as error:
        way = f"mend it, or `python learn.py reset {exercise.id}` keeps a copy of it and begins anew"
        raise RecordError(f"{course_path(exercise.work)}: not Python ({error}): {way}") from None
    write_file(exercise.work, lambda file: file.write(content))


def _with_value(content: bytes, name: str, value: bytes) -> bytes:
    """A file in which a name has this value: in place of its last one, or in a line at the end."""
    match [node for node in ast.parse(content).body if name in names_in(node)]:
        case [*_, ast.Assign(targets=[ast.Name()], value=old)]:
            lines, last = content.splitlines(keepends=True), (old.end_lineno or old.lineno) - 1
            before = [*lines[: old.lineno - 1], lines[old.lineno - 1][: old.col_offset]]
            return b"".join([*before, value, lines[last][old.end_col_offset :], *lines[last + 1 :]])
    return content + b"\n" * (not content.endswith(b"\n")) + name.encode() + b" = " + value + b"\n"


def from_cell(exercise: Exercise, text: str) -> Path | None:
    """A file of the functions, or the answers, that a notebook's cell has; None if it has none.

    What the start has beside them (imports, `inputs`, what is given) goes before. The reader's file stays as it is.
    """
    start = exercise.start.read_text(encoding="utf-8")
    defined = [node for node in ast.parse(text).body if names_in(node)]
    names = {name for node in defined for name in names_in(node)}
    if not any(isinstance(node, ast.FunctionDef) for node in defined) and not names & exercise.answers.keys():
        return None
    kept = [node for node in ast.parse(start).body if not names_in(node) & names]
    path = exercise.work.parent / "cells" / exercise.work.name
    make_folder(path.parent)
    write_text(
        path, "\n\n\n".join([*(_source(start, node) for node in kept), *(_source(text, node) for node in defined)])
    )
    return path


def names_in(node: ast.stmt) -> set[str]:
    """What a statement defines: a function or constants; imports and calls define nothing here."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    stores = ast.walk(node) if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else ()
    return {name.id for name in stores if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}


def _source(text: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def note(grade: Grade) -> None:
    """Keeps a grade. The first range of each question is locked, later ones are kept. Raises RecordError."""
    exercise = grade.exercise
    for gate in grade.gates:
        if gate.scored:
            learner_log.add("predict", f"{exercise.id} {gate.name}", hash=exercise.hash, **gate.scored)
    learner_log.add("check", exercise.id, hash=exercise.hash, status=grade.status, star=grade.star)
