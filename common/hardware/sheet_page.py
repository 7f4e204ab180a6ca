"""The recorded sheets as tables in a README."""

from pathlib import Path

from common.hardware.sheet import Sheet
from common.hardware.sheet_text import level_rows
from common.show.tables import LIMIT_HEADINGS, head, limit_rows, line, source


def markdown(sheets: list[tuple[Path, Sheet]]) -> str:
    """The levels and the limits of each machine under its origin; empty without sheets."""
    lines = []
    for path, sheet in sheets:
        headings, rows = level_rows(sheet)
        lines += ["", source((path, sheet)), "", "Bandwidths in GB/s:", "", *head(headings), *map(line, rows)]
        lines += ["", *head(LIMIT_HEADINGS), *map(line, limit_rows(sheet.limits))]
    return "\n".join(lines).strip()
