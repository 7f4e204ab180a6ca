"""The recorded sheets as tables in a README."""

from pathlib import Path

from common.hardware.sheet import Sheet
from common.hardware.sheet_text import level_rows
from common.show.layout import markdown_table
from common.show.tables import LIMIT_HEADINGS, limit_rows, source


def markdown(sheets: list[tuple[Path, Sheet]]) -> str:
    """The levels and the limits of each machine under its origin; empty without sheets."""
    parts = []
    for path, sheet in sheets:
        limits = markdown_table(LIMIT_HEADINGS, limit_rows(sheet.limits))
        parts += [source((path, sheet)), "Bandwidths in GB/s:", markdown_table(*level_rows(sheet)), limits]
    return "\n\n".join(parts)
