"""Writes the tables of the READMEs, and the pages of all sizes, from recorded/: python -m common.cli.readmes."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from common.calibration import markdown as calibrations
from common.calibration.checks import newest
from common.calibration.findings import PAIRS
from common.hardware import markdown as sheets
from common.hardware import sheet
from common.pairs.contract import OneLine
from common.pairs.pair import ROOT, discover
from common.pairs.source import source_hash
from common.record import archive, files
from common.show import summary
from common.show.tables import NOTHING

MARKER = "<!-- results of {} from recorded/: python -m common.cli.readmes -->"
HARDWARE = "<!-- hardware from recorded/: python -m common.cli.readmes -->"
CALIBRATION = "<!-- calibration from recorded/: python -m common.cli.readmes -->"
END = "<!-- end of results -->"


def filled_in(text: str) -> str:
    """A README's text with the tables between its markers made anew."""
    makers: dict[str, Callable[..., str]] = {
        MARKER: _results,
        HARDWARE: lambda: sheets.markdown(sheet.FORMAT.recorded(sheet.FILE)),
        CALIBRATION: lambda: calibrations.markdown(
            newest(), {pair.name: source_hash(pair) for pair in discover(PAIRS)}
        ),
    }
    for marker, make in makers.items():
        pattern = re.escape(marker).replace(re.escape("{}"), r"(ch\d+)")
        for found in re.finditer(f"({pattern})\n.*?{re.escape(END)}", text, re.DOTALL):
            text = text.replace(found[0], f"{found[1]}\n{make(*found.groups()[1:]) or NOTHING}\n{END}")
    return text


def _results(chapter: str) -> str:
    pairs = discover(ROOT / chapter)
    return summary.by_device(archive.recorded(chapter), archive.current(pairs), [pair.name for pair in pairs])


def readmes() -> list[Path]:
    return [ROOT / "README.md", ROOT / "common/README.md", *sorted(ROOT.glob("ch[0-9]*/README.md"))]


def pages() -> dict[Path, str]:
    """recorded/<device>/<chapter>.md of every chapter of which something is recorded."""
    made: dict[Path, str] = {}
    for path in readmes()[2:]:
        made |= summary.pages(path.parent.name, discover(path.parent))
    return made


def main() -> int:
    try:
        made = pages()
        for useless in {*files.RECORDED.glob("*/ch[0-9]*.md")} - {*made}:
            useless.unlink()
        for path, text in [*made.items(), *((path, filled_in(path.read_text(encoding="utf-8"))) for path in readmes())]:
            files.write_text(path, text)
    except OneLine as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
