"""Text for a terminal: messages of one line that any terminal can show, lines wrapped at its width."""

import os
import textwrap
from collections.abc import Iterable
from typing import IO

LEAST_WIDTH = 40  # columns: a verdict and a speedup beside their version
USUAL_WIDTH = 80
FEW = 20  # names that one line may list


def printable(text: str) -> str:
    """The text with characters escaped that move a cursor, change a colour or cannot be encoded."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


class UserError(Exception):
    """Bad input of any kind; str() is the one-line message."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback. Lines end between words, which JupyterLab's need not."""
        return [f"\x1b[1m{line}\x1b[0m" for line in wrap_text(str(self), USUAL_WIDTH, hang="").splitlines()]


def width_of(stream: IO[str]) -> int | None:
    """Columns to fit: COLUMNS, else those of the terminal; None for a file or a pipe, whose lines may be long."""
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() else 0
    if not width and not stream.isatty():
        return None
    try:
        return width or os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except OSError:  # a terminal that does not know
        return USUAL_WIDTH


def require_width(stream: IO[str]) -> None:
    """Raises UserError where results would have no room, before anything is measured."""
    if (width := width_of(stream) or LEAST_WIDTH) < LEAST_WIDTH:
        raise UserError(f"{width} columns are too few: widen the terminal, or set COLUMNS, to {LEAST_WIDTH} or more")


def wrap_text(text: str, width: int | None, hang: str = "  ") -> str:
    """The text in lines of this width, broken between words; lines after the first begin with `hang`."""
    if width is None or len(text) <= width:
        return text
    return textwrap.fill(text, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


def suggestions(name: str, names: Iterable[str], listed_by: str) -> str:
    """Of a name that nothing has: those that are like it, else all where they are few, else what lists them."""
    from difflib import get_close_matches  # only for mistakes

    names_once, wanted = list(dict.fromkeys(names)), name.lower()
    by_case = {other.lower(): other for other in names_once}
    like = [other for other in names_once if wanted and wanted in other.lower()]
    if like := like or [by_case[other] for other in get_close_matches(wanted, by_case)]:
        return f"did you mean {', '.join(like[:FEW])}"
    return f"there are {', '.join(names_once)}" if len(names_once) <= FEW else f"`{listed_by}` names all"
