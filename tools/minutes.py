"""How long notebooks and exercises take a reader: by words, lines of code, predictions and cells.

The rates fit what readers took: about 42 minutes for chapter 0, 90 for chapters 3 and 5, 60 for chapter 6.
"""

import json
import re
from pathlib import Path

from common.learn.exercise import EXERCISES, NOTEBOOKS, exercises, find
from common.show.layout import markdown_table

WORDS, LINES = 170, 26  # a minute: of text that is thought about, of code that is understood
PREDICTION, CELL = 1.0, 0.2  # minutes: for an answer, and to run a cell and look at its output
# a reader took so many times as long: diffs to read, formulas, a new term in most lines
DENSE = {"ch7_decoding": 1.5, "ch8_training": 1.8}
STEP = 5  # minutes: nothing is known more exactly
SHOWS = ("nb.learn.show(", "nb.learn.check(")  # exercises have minutes of their own
STATED = re.compile(r"(?<=Allow )\d+")  # in the first cell of a notebook
SECTION = re.compile(r"^## (\d*)", re.MULTILINE)
Stop = tuple[str, tuple[int, ...], tuple[str, ...]]  # a notebook, its sections, exercises
TWO_HOURS: tuple[Stop, ...] = (
    ("ch0_triton", (1, 2, 3, 4), ("ch0/stride", "ch0/row_max")),
    ("ch1_performance_basics", (1, 3, 5), ("ch1/coalesce",)),
)


def of_notebook(path: Path, sections: tuple[int, ...] = ()) -> float:
    """Minutes, without its exercises; of some sections only, if there are any."""
    minutes, section = 0.0, 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text, is_code = "".join(cell["source"]), cell["cell_type"] == "code"
        if not is_code and (headings := SECTION.findall(text)):
            section = int(headings[-1] or 0)
        if text.startswith(SHOWS) or (sections and section not in sections):
            continue
        of_code = len(text.splitlines()) / LINES + CELL + PREDICTION * text.count("nb.predict(")
        minutes += of_code if is_code else len(text.split()) / WORDS
    return minutes * DENSE.get(path.stem, 1.0)


def rounded(minutes: float) -> int:
    return max(STEP, round(minutes / STEP) * STEP)


def notebook_text(path: Path) -> str:
    """A notebook's file that states its minutes."""
    return STATED.sub(str(rounded(of_notebook(path))), path.read_text(encoding="utf-8"), count=1)


def table() -> str:
    """The minutes of each notebook and of its chapter's exercises, in Markdown."""
    rows, course = [], exercises()
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        chapter = path.name.split("_")[0]
        of_chapter = [exercise for exercise in course if exercise.chapter == chapter]
        own = f"{sum(exercise.reader_minutes for exercise in of_chapter)} ({len(of_chapter)})" if of_chapter else ""
        rows.append([f"[{path.stem}](notebooks/{path.name})", str(rounded(of_notebook(path))), own])
    return markdown_table(["notebook", "minutes", "exercises, minutes"], rows)


def two_hours() -> str:
    """The short path, in Markdown, with its minutes."""
    lines, total = [], 0
    for notebook, sections, names in TWO_HOURS:
        minutes = rounded(of_notebook(NOTEBOOKS / f"{notebook}.ipynb", sections))
        numbers = ", ".join(map(str, sections))
        lines.append(f"- [{notebook}](notebooks/{notebook}.ipynb), sections {numbers}: {minutes} minutes")
        own = [find(name, EXERCISES) for name in names]
        lines += [f"- `python learn.py start {each.id}`: {each.reader_minutes} minutes" for each in own]
        total += minutes + sum(each.reader_minutes for each in own)
    return "\n".join([*lines, "", f"Together {total} minutes."])
