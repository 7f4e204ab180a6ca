"""Write the figures of READMEs, the answers and the pages of all sizes from recorded/: python -m common.cli.readmes."""

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common.calibration import checks, truth_page
from common.calibration import markdown as calibrations
from common.calibration.findings import FILE, PAIRS
from common.cli import answers, counts_page
from common.hardware import markdown as sheets
from common.hardware import sheet
from common.pairs.one_line import OneLine
from common.pairs.pair import ROOT, discover
from common.pairs.source import source_hash
from common.record import archive, files
from common.show import another, quoted, summary
from common.show.tables import NOTHING, link

MARKER = "<!-- results of {} from recorded/: python -m common.cli.readmes -->"
HARDWARE = "<!-- hardware from recorded/: python -m common.cli.readmes -->"
CALIBRATION = "<!-- calibration from recorded/: python -m common.cli.readmes -->"
END = "<!-- end of results -->"


def filled_in(text: str, problems: files.Problems | None = None) -> str:
    """A README's text with new tables between its markers. `problems`: as in `archive.recorded`."""
    makers: dict[str, Callable[..., str]] = {
        MARKER: partial(_results, problems),
        HARDWARE: lambda: sheets.markdown(sheet.FORMAT.recorded(sheet.FILE, problems=problems)),
        CALIBRATION: lambda: calibrations.markdown(
            checks.FORMAT.recorded(FILE, problems=problems), {pair.name: source_hash(pair) for pair in discover(PAIRS)}
        ),
    }
    for marker, make in makers.items():
        pattern = re.escape(marker).replace(re.escape("{}"), r"(ch\d+)")
        for found in re.finditer(f"({pattern})\n.*?{re.escape(END)}", text, re.DOTALL):
            text = text.replace(found[0], f"{found[1]}\n{make(*found.groups()[1:]) or NOTHING}\n{END}")
    return quoted.filled_in(text)


def _results(problems: files.Problems | None, chapter: str) -> str:
    pairs, found = discover(ROOT / chapter), archive.recorded(chapter, problems=problems)
    text = summary.by_device(found, archive.current(pairs), pairs)
    is_counted = found and any(pair.ranks == 1 for pair in pairs)
    links = ", ".join(map(link, counts_page.paths(problems))) if is_counted else ""
    return f"{text}\n\nThe memory traffic of every version, and the time predicted from it: {links}." if links else text


def readmes() -> list[Path]:
    return [ROOT / "README.md", ROOT / "common/README.md", *sorted(ROOT.glob("ch[0-9]*/README.md"))]


def pages(problems: files.Problems | None = None) -> dict[Path, str]:
    """The generated pages: recorded/<device>/ <chapter>.md, counts.md, traffic.md, predicted.md, and chN/ANSWERS.md.

    `problems`: as in `archive.recorded`. Raises OneLine.
    """
    made: dict[Path, str] = {}
    pairs = {path.parent.name: discover(path.parent) for path in readmes()[2:]}
    for chapter, of_chapter in pairs.items():
        made |= summary.pages(chapter, of_chapter, problems)
    made |= answers.pages() | counts_page.pages(pairs, problems) | truth_page.pages(problems)
    return made | another.pages(problems)


def main() -> int:
    """Write all files. Exit status 1 if a file under recorded/ is bad and left out, 2 if a file cannot be written."""
    problems: files.Problems = {}
    try:
        made = pages(problems)
        damaged = {path.parent for path in problems}
        for useless in {*files.RECORDED.glob("*/ch[0-9]*.md")} - {*made}:
            if useless.parent not in damaged:
                useless.unlink()
        made |= {path: filled_in(path.read_text(encoding="utf-8"), problems) for path in readmes()}
        for path, text in made.items():
            files.write_text(path, text)
    except OneLine as error:
        print(error, file=sys.stderr)
        return 2
    for problem in problems.values():
        print(f"not in the tables: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
