"""Exercises and what the reader did, on the console."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.markdown import Markdown
from rich.markup import escape

from common.cli import forecasts
from common.learn.exercise import Exercise
from common.learn.gate import ENDS, Gate, Grade
from common.learn.learner_log import Standing
from common.pairs.wide_tables import print_table
from common.show.console import make_console, say

MARKS = {True: ("passed", "green"), False: ("not yet", "red"), None: ("not judged", "yellow")}
Standings = Mapping[str, Standing]


def print_list(known: Sequence[Exercise], stands: Standings) -> None:
    rows = [[each.id, each.title, each.kind, str(each.minutes), _stands(stands[each.id])] for each in known]
    passed = sum(stands[each.id].passed for each in known)
    title = f"{len(known)} exercises, {passed} passed"
    print_table(title, ("exercise", "title", "kind", "minutes", ""), rows, make_console())


def _stands(standing: Standing) -> str:
    said = ["passed" if standing.passed else "open" if standing.started else ""]
    counted = ((standing.tries, "try", "tries"), (standing.hints, "hint", "hints"))
    said += [f"{count} {one if count == 1 else many}" for count, one, many in counted if count]
    return ", ".join(filter(None, [*said, "solution seen first" * standing.seen]))


def print_exercise(exercise: Exercise, file: str) -> None:
    """What it asks, in the words of its file."""
    console = make_console()
    kind = f"({exercise.kind}, about {exercise.minutes} minutes)"
    console.print(f"[bold]{exercise.id}: {escape(exercise.title)}[/] {kind}")
    console.print(f"\n{escape(exercise.objective)}\n", highlight=False)
    for text in re.split(r"^((?:\|.*\n)+)", exercise.spec, flags=re.MULTILINE):
        if text.startswith("|"):  # rich cuts words where a table of Markdown is too wide
            cells = [re.findall(r"\| ([^|]*?) *(?=\|)", line) for line in text.replace("`", "").splitlines()]
            print_table("", cells[0], cells[2:], console)
        else:
            console.print(Markdown(text))
    for question in exercise.questions:
        if not question.endswith(": "):  # where only the specification tells what is asked
            say(f"  {question}", console, "    ")
    console.print(f"\nYour file: [bold]{file}[/]. `python learn.py check` grades it, `watch` does at each save.")


def print_gate(gate: Gate, width: int = 8) -> None:
    mark, color = MARKS[gate.passed]
    if not gate.is_extra:
        style = (color, 3 + width, 3 + width + len(mark))
        say(f"  {gate.name:{width}} {mark}: {gate.text}", make_console(), "    ", style)
    elif gate.passed:
        say(f"  {'bonus':{width}} {gate.text}", make_console(), "    ")


def print_end(grade: Grade) -> None:
    say(f"{grade.exercise.id}: {ENDS[grade.status]}", make_console())


def print_progress(known: Sequence[Exercise], stands: Standings, predicted: Sequence[dict[str, Any]]) -> None:
    """By chapter; then how sure the predictions were, the first ones and the revised ones apart."""
    console = make_console()
    for chapter, group in groupby(known, key=lambda each: each.chapter):
        of_chapter = list(group)
        passed = [each for each in of_chapter if stands[each.id].passed]
        marks = " ".join(each.folder.name + (" ✓" if each in passed else "") for each in of_chapter)
        say(f"{chapter}  {len(passed)} of {len(of_chapter)}: {marks}", console)
    for line in forecasts.lines(known, predicted):
        say(line, console)
