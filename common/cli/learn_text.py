"""Exercises and what the reader did, on the console."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape

from common.cli import forecasts
from common.learn.exercise import Exercise
from common.learn.gate import Gate, Grade, end_text
from common.learn.learner_log import Standing
from common.pairs.pair import ROOT
from common.pairs.wide_tables import print_table
from common.show.console import make_console, print_wrapped

MARKS = {True: ("passed", "green"), False: ("not yet", "red"), None: ("not judged", "yellow")}
Standings = Mapping[str, Standing]


def print_list(exercises: Sequence[Exercise], standings: Standings) -> None:
    rows = [
        [each.id, each.title, each.kind, str(each.reader_minutes), _standing_text(standings[each.id])]
        for each in exercises
    ]
    passed = sum(standings[exercise.id].passed for exercise in exercises)
    title = f"{len(exercises)} exercises, {passed} passed"
    print_table(title, ("exercise", "title", "kind", "minutes", ""), rows, make_console())


def _standing_text(standing: Standing) -> str:
    words = [f"passed{standing.late}" if standing.passed else "open" if standing.started else ""]
    counts = ((standing.tries, "try", "tries"), (standing.hints, "hint", "hints"))
    words += [f"{count} {singular if count == 1 else plural}" for count, singular, plural in counts if count]
    return ", ".join(filter(None, [*words, "solution seen first" * standing.seen]))


def print_exercise(exercise: Exercise, file: str) -> None:
    """What it asks, in the words of its file."""
    console = make_console()
    kind = f"({exercise.kind}, about {exercise.reader_minutes} minutes)"
    console.print(f"[bold]{exercise.id}: {escape(exercise.title)}[/] {kind}")
    console.print(f"\n{escape(exercise.objective)}\n", highlight=False)
    for text in re.split(r"^((?:\|.*\n)+)", exercise.spec, flags=re.MULTILINE):
        if text.startswith("|"):  # rich cuts words where a table of Markdown is too wide
            cells = [re.findall(r"\| ([^|]*?) *(?=\|)", line) for line in text.replace("`", "").splitlines()]
            print_table("", cells[0], cells[2:], console)
        else:
            console.print(Markdown(text))
    if exercise.profile:
        print_profile(exercise.profile, console)
    for question in exercise.questions:
        if not question.endswith(": "):  # where only the specification tells what is asked
            print_wrapped(f"  {question}", console, "    ")
    if exercise.speed_asked:
        print_wrapped(exercise.speed_asked, console)
    if exercise.read:
        console.print()
        print_wrapped(exercise.read_first, console)
    console.print(f"\nYour file: [bold]{file}[/]. `python learn.py check` grades it, `watch` does at each save.")


def print_profile(path: Path, console: Console) -> None:
    """What was recorded of an unknown program, and where its file is."""
    from common.record import profile_file  # only where there is one
    from common.show.timeline_text import profile_text

    console.print(profile_text(profile_file.load(path), console.width), markup=False, highlight=False)
    print_wrapped(f"The whole of it opens in https://ui.perfetto.dev: {path.relative_to(ROOT)}", console)


def print_gate(gate: Gate, width: int = 8) -> None:
    mark, color = MARKS[gate.passed]
    if not gate.is_extra:
        style = (color, 3 + width, 3 + width + len(mark))
        print_wrapped(f"  {gate.name:{width}} {mark}: {gate.text}", make_console(), "    ", style)
    elif gate.passed:
        print_wrapped(f"  {'bonus':{width}} {gate.text}", make_console(), "    ")


def print_end(grade: Grade, late: str = "") -> None:
    """`late`: of predictions, that they hold at the second try; the first ranges stay locked."""
    print_wrapped(f"{grade.exercise.id}: {end_text(grade, late)}", make_console())


def print_progress(exercises: Sequence[Exercise], standings: Standings, predictions: Sequence[dict[str, Any]]) -> None:
    """By chapter; then how sure the predictions were, the first ones and the revised ones apart."""
    console = make_console()
    for chapter, group in groupby(exercises, key=lambda exercise: exercise.chapter):
        of_chapter = list(group)
        passed = [exercise for exercise in of_chapter if standings[exercise.id].passed]
        late = {exercise.id: standings[exercise.id].late for exercise in passed}
        marks = " ".join(
            exercise.folder.name + f" ✓{late.get(exercise.id)}" * (exercise in passed) for exercise in of_chapter
        )
        print_wrapped(f"{chapter}  {len(passed)} of {len(of_chapter)}: {marks}", console)
    for line in forecasts.lines(exercises, predictions):
        print_wrapped(line, console)
