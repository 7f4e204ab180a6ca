"""Tables and lines that fit a terminal: broken between words, and columns without room stand in a table below."""

import textwrap
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.pairs.user_error import printable, width_of, wrap_text

TIE = "\u00a0"  # in a cell: a space at which no line is broken
GAP = 2  # columns of the terminal between two cells
EDGES = 3  # columns of the terminal beside the first and the last cell
Rows = Sequence[Sequence[str | Text]]


def print_wrapped(text: str, console: Console, hang: str = "  ", style: tuple[str, int, int] = ("", 0, 0)) -> None:
    """Print a line of text: on a terminal wrapped between words at its width, elsewhere as one line.

    `hang`: before the lines after the first. `style`: one of rich, and where it begins and ends in the first line.
    """
    line = Text(wrap_text(printable(text), width_of(console.file), hang))
    line.stylize(*style)
    console.print(line, soft_wrap=True)


def print_table(
    title: str, headings: Sequence[str], rows: Rows, console: Console, keys: int = 1, whole_cells: bool = False
) -> None:
    """Print a title and its table; nothing without rows. Texts are shown literally.

    `keys`: the number of first columns that each part of a table that is too wide has. `whole_cells`: only headings are
    broken, no cells.
    """
    if not rows:
        return
    console.print(wrap_text(printable(title), console.width), markup=False, soft_wrap=True)
    columns = list(zip(headings, *rows, strict=True))
    cells = [max(len(str(cell)) for cell in column[1:]) for column in columns]
    words = [max(len(word) for cell in column for word in str(cell).split(" ")) for column in columns]
    bounds = list(zip(words, map(max, words, cells), (max(len(str(cell)) for cell in c) for c in columns), strict=True))
    for part in _parts([low[whole_cells] for low in bounds], console.width - EDGES, keys):
        widths = _widths([bounds[place] for place in part], console.width - EDGES)
        table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
        for place, width in zip(part, widths, strict=True):
            table.add_column(_break_lines(headings[place], width), no_wrap=True, width=width)
        for row in rows:
            table.add_row(*(_break_lines(row[place], width) for place, width in zip(part, widths, strict=True)))
        console.print(table)


def _parts(least: Sequence[int], room: int, keys: int) -> Iterator[list[int]]:
    """The columns of one table after another."""
    part = list(range(keys))
    for place in range(keys, len(least)):
        if len(part) > keys and sum(least[other] + GAP for other in [*part, place]) - GAP > room:
            yield part
            part = list(range(keys))
        part.append(place)
    yield part


def _widths(bounds: Sequence[tuple[int, ...]], room: int) -> list[int]:
    """Widths of columns whose longest word, longest cell and longest text are known.

    The widest give way: first headings are broken, then cells between words, and only then words.
    """
    words, cells, texts = zip(*bounds, strict=True)
    for lows, highs in ((cells, texts), (words, cells), ([1] * len(bounds), cells)):
        for level in range(room, 0, -1):
            widths = [min(high, max(low, level)) for low, high in zip(lows, highs, strict=True)]
            if sum(widths) + GAP * (len(widths) - 1) <= room:
                return widths
    raise ValueError(f"{len(bounds)} columns in {room}")


def _break_lines(cell: str | Text, width: int) -> Text:
    lines = textwrap.wrap(TIE.join(map(printable, str(cell).split(TIE))), max(width, 1), break_on_hyphens=False)
    return Text("\n".join(lines).replace(TIE, " "), style=cell.style if isinstance(cell, Text) else "")
