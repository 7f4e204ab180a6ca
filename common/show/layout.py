"""A table grouped by titles, with every line whole: the same entries for a terminal of any width and for Markdown."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from common.pairs.user_error import printable

CORE = 5  # columns that move closer together before one of them goes
LEAST = 2  # columns that never go: a verdict, a speedup
NAME_WIDTH = 24  # columns; a longer name takes a line of its own where there is no room
LEFT = (  # columns of words; those of numbers are aligned to the right
    "verdict", "95 % interval", "vs library", "recorded on a GPU", "compared", "new interval", "old interval",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A line of a table: a name, and cells by their heading. `parent`: the version that it is a further line of.

    `is_title`: of a group. `styles`: of rich, by heading; under "" of the whole line.
    """

    name: str
    cells: Mapping[str, str] = field(default_factory=dict)
    parent: str = ""
    is_title: bool = False
    styles: Mapping[str, str] = field(default_factory=dict)

    @property
    def indented(self) -> str:
        """The name as it stands on a terminal, under its group's title."""
        return ("" if self.is_title else "    " if self.parent else "  ") + printable(self.name)


@dataclass(frozen=True)
class Column:
    heading: str  # empty over the names
    width: int
    is_left: bool

    def padded(self, text: str) -> str:
        space = " " * (self.width - cell_len(text))
        return text + space if self.is_left else space + text


def layout(headings: Sequence[str], entries: Sequence[Entry], width: int, least: int = LEAST) -> list[Text]:
    """The lines of a table for a terminal of `width` columns: headings that have cells, as many as there is room for.

    Nothing is cut or wrapped: columns go from the right, and a name that is too long takes a line of its own. The first
    `least` columns never go. No entries are no lines.
    """
    shown = _filled_headings(headings, entries)
    texts = [[heading, *_cells(heading, entries)] for heading in shown]
    needs = [max(cell_len(printable(text)) for text in column) for column in texts]
    names = max([cell_len(entry.indented) for entry in entries if not entry.is_title], default=0)
    is_wide = names + sum(needs) + 2 * len(needs) <= width
    count, gap, name_width = _fit_columns(needs, names if is_wide else min(names, NAME_WIDTH), width, least)
    columns = [Column("", name_width, True)]
    columns += [Column(heading, need, heading in LEFT) for heading, need in zip(shown[:count], needs, strict=False)]
    lines = [Text((" " * gap).join(column.padded(column.heading) for column in columns).rstrip(), "dim")]
    return [*lines, *(line for entry in entries for line in _lines(entry, columns, gap))] if entries else []


def _filled_headings(headings: Sequence[str], entries: Sequence[Entry]) -> list[str]:
    return [heading for heading in headings if any(_cells(heading, entries))]


def _cells(heading: str, entries: Iterable[Entry]) -> list[str]:
    return [entry.cells.get(heading, "") for entry in entries]


def _fit_columns(needs: Sequence[int], names: int, width: int, least: int) -> tuple[int, int, int]:
    """(The number of columns beside the names, the gap between columns, the width of the names.)"""
    least = min(least, len(needs))
    for count in range(len(needs), least - 1, -1):
        for gap in (2, 1) if count <= CORE else (2,):
            if names + sum(needs[:count]) + gap * count <= width:
                return count, gap, names
    return least, 1, max(0, width - sum(needs[:least]) - least)


def _lines(entry: Entry, columns: Sequence[Column], gap: int) -> list[Text]:
    """An entry's line; two if its name would run into a cell."""
    first, *others = columns
    padded = [first.padded(""), *(column.padded(printable(entry.cells.get(column.heading, ""))) for column in others)]
    figures = (" " * gap).join(padded).rstrip()
    room = len(figures) - len(figures.lstrip()) - gap if figures else math.inf
    name = Text(entry.indented, entry.styles.get("", "bold" if entry.is_title else ""))
    above, name = ([name], Text()) if name.cell_len > room else ([], name)
    text = name + Text(figures[name.cell_len :], entry.styles.get("", "dim" if entry.is_title else ""))
    end = first.width + len(name) - name.cell_len  # in characters, of which some are two columns wide
    for column in others:
        end += gap + column.width
        text.stylize(entry.styles.get(column.heading, ""), end - column.width, end)
    return [*above, text]


def markdown(headings: Sequence[str], entries: Sequence[Entry]) -> str:
    """The same entries as a table in Markdown, with all columns that have cells; empty without entries."""
    shown = _filled_headings(headings, entries)
    names = [f"**{entry.name}**" if entry.is_title else f"{entry.parent} {entry.name}".strip() for entry in entries]
    rows = zip(names, *(_cells(heading, entries) for heading in shown), strict=True)
    return markdown_table(["pair and version", *shown], rows) if entries else ""


def markdown_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown, one line a row."""
    heading, *lines = (f"| {' | '.join(map(str, cells))} |" for cells in (headings, *rows))
    return "\n".join([heading, "| --- " * len(headings) + "|", *lines])
