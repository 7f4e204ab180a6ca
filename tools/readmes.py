"""Write the pages and the tables that are made from records.

Exit status: 1 a file under recorded/ is bad and left out; 2 a file cannot be written.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common.hardware import sheet, sheet_text
from common.pairs.lessons import read_lessons
from common.pairs.pair import ROOT, Pair, class_of, discover, short
from common.pairs.source import source_hash
from common.record import files, store
from common.record.record_file import combine_records
from common.record.result import PairResult
from common.show import quoted_figures, second_gpu_page, summary
from common.show.formats import binary
from common.show.layout import markdown_table
from common.show.tables import NOTHING, link, origin
from tools import answers_page, counter_page, counts_page, front_page, minutes, recorded_pages, refusals
from tools.calibration import calibration_page as calibrations
from tools.calibration import checks
from tools.calibration.findings import FILE, PAIRS

PAIRS_OF = "<!-- pairs of {} from lessons.toml: make readme -->"
MARKER = "<!-- results of {} from recorded/: make readme -->"
HARDWARE = "<!-- hardware from recorded/: make readme -->"
MEMORY = "<!-- peak memory of {} from recorded/: make readme -->"
CALIBRATION = "<!-- calibration from recorded/: make readme -->"
MINUTES = "<!-- minutes of notebooks and exercises: make readme -->"
TWO_HOURS = "<!-- two hours: make readme -->"
WAYS_OUT = "<!-- ways out from common/show/ways_out.py: make readme -->"
PICTURE = "<!-- picture from recorded/: make readme -->"
SAMPLE = "<!-- sample from recorded/: make readme -->"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
END, PAIRS_END = "<!-- end of results -->", "<!-- end of pairs -->"
SOURCES = {"library/source": "", "library/tf32": "tf32"}  # -> precision: what the source of a chapter compares with


def fill_in_tables(text: str, problems: files.Problems | None = None) -> str:
    """A README's text with new tables between its markers. `problems`: as in `store.chapter_records`."""
    makers: dict[str, Callable[..., str]] = {
        PAIRS_OF: _table_of_pairs,
        MARKER: partial(_results, problems),
        MEMORY: partial(_memory, problems),
        WAYS_OUT: refusals.markdown,
        MINUTES: minutes.table,
        PICTURE: lambda: front_page.markdown(front_page.load(_chapters(), problems)),
        SAMPLE: lambda: front_page.sample(front_page.load(_chapters(), problems)),
        TWO_HOURS: minutes.two_hours,
        HARDWARE: lambda: sheet_text.markdown(sheet.FORMAT.load_all(sheet.FILE, problems=problems)),
        CALIBRATION: lambda: calibrations.markdown(
            checks.FORMAT.load_all(FILE, problems=problems), {pair.name: source_hash(pair) for pair in discover(PAIRS)}
        ),
    }
    for marker, make in makers.items():
        pattern = re.escape(marker).replace(re.escape("{}"), r"(ch\d+)")
        for match in re.finditer(f"({pattern})\n.*?({END}|{PAIRS_END})", text, re.DOTALL):
            start, *chapter, end = match.groups()
            text = text.replace(match[0], f"{start}\n{make(*chapter) or NOTHING}\n{end}")
    return quoted_figures.fill_in_figures(text)


def _table_of_pairs(chapter: str) -> str:
    """A row for each pair, in reading order."""
    lessons = read_lessons(ROOT / chapter)
    headings = dict.fromkeys(heading for lesson in lessons.values() for heading in lesson.columns)
    rows = [
        [f"`{name}`", lesson.summary, *(lesson.columns.get(heading, "") for heading in headings)]
        for name, lesson in lessons.items()
    ]
    return markdown_table(["pair", "in one sentence", *headings], rows)


def _results(problems: files.Problems | None, chapter: str) -> str:
    pairs, records = discover(ROOT / chapter), store.chapter_records(chapter, problems=problems)
    text = recorded_pages.tables_by_device(records, store.current_filter(pairs), pairs)
    is_counted = records and any(pair.ranks == 1 for pair in pairs)
    links = ", ".join(map(link, counts_page.paths(problems))) if is_counted else ""
    return f"{text}\n\nThe memory traffic of every version, and the time predicted from it: {links}." if links else text


def _memory(problems: files.Problems | None, chapter: str) -> str:
    """The peak memory of each pair's best version and of the source's compiled formula, where that is recorded."""
    names = {label.replace("/", "_") for label in SOURCES}
    pairs = discover(ROOT / chapter)
    pairs = [pair for pair in pairs if any(names & {*version.functions} for version in pair.versions)]
    record = combine_records([record for _, record in store.recorded_sizes(chapter, problems=problems)])
    results = filter(store.current_filter(pairs), record.pairs if record else [])
    rows = [cells for result in results if (cells := _memory_cells(result))]
    if not record or not rows:
        return ""
    headings = ("pair", "size", "best version", "its peak", "the source's formula, compiled", "reduction")
    title = f"{len(rows)} sizes, recorded on {origin(record)}"
    text = f"<details><summary>{title}</summary>\n\n{markdown_table(headings, rows)}\n\n</details>"
    missing = ", ".join(pair.name for pair in pairs if pair.name not in {name for name, *_ in rows})
    return f"{text}\n\nNot recorded: {missing}." if missing else text


def _memory_cells(result: PairResult) -> list[str]:
    """The cells of a line; none if nothing was timed, or at a special size without a compiled formula of SOURCES."""
    source = next((label for label in SOURCES if label in result.arms), "")
    precision = SOURCES.get(source, "")
    row, of_source = summary.best_row(result, precision), result.arms[source].peak_bytes if source else None
    peak = result.arms[row.variant].peak_bytes if row else None
    if not row or peak is None or not (of_source or class_of(result.size) in ("default", "2d")):
        return []
    start = [result.name, result.size, short(row.variant), binary(peak)]
    if not of_source:
        return [*start, "not recorded", ""]
    return [*start, f"{binary(of_source)} `{source}`", f"{round(100 * (1 - peak / of_source))} %"]


def readmes() -> list[Path]:
    return [ROOT / "README.md", ROOT / "common/MEASUREMENT.md", *sorted(ROOT.glob("ch[0-9]*/README.md"))]


def _chapters() -> dict[str, list[Pair]]:
    return {path.parent.name: discover(path.parent) for path in readmes()[2:]}


def pages(problems: files.Problems | None = None) -> dict[Path, str]:
    """The generated pages: limits.svg, chN/ANSWERS.md, and in recorded/<device>/ of chapters and counts.

    `problems`: as in `store.chapter_records`. Raises UserError.
    """
    texts: dict[Path, str] = {}
    pairs = _chapters()
    for chapter, of_chapter in pairs.items():
        texts |= recorded_pages.pages(chapter, of_chapter, problems)
    texts |= {ROOT / front_page.PICTURE: text} if (text := front_page.picture(front_page.load(pairs, problems))) else {}
    texts |= answers_page.pages() | counts_page.pages(pairs, problems) | counter_page.pages(problems)
    return texts | second_gpu_page.pages(problems)


def _write_changed(path: Path, text: str) -> bool:
    """Write a file, and say so, unless it has this text already. Whether it was written. Raises RecordError."""
    with files.file_errors(path, "read"):
        is_changed = not path.exists() or path.read_bytes() != text.encode(errors="backslashreplace")
    if is_changed:
        files.write_text(path, text)
        print(f"written: {path.relative_to(ROOT)}")
    return is_changed


def run(args: Namespace) -> int:
    """Write all files. Returns the exit status. Raises UserError."""
    problems: files.Problems = {}
    texts = pages(problems)
    damaged = {path.parent for path in problems}
    old = {*files.RECORDED.glob("*/ch[0-9]*.md")} - {*texts}  # a chapter's page: ch1_scripts is none
    useless = [path for path in old if path.parent not in damaged and path.stem[2:].isdigit()]
    for path in useless:
        path.unlink()
        print(f"removed: {path.relative_to(ROOT)}")
    texts |= {path: fill_in_tables(path.read_text(encoding="utf-8"), problems) for path in [*readmes(), CONTRIBUTING]}
    notebooks = {path: minutes.notebook_text(path) for path in minutes.NOTEBOOKS.glob("*.ipynb")}
    texts |= {path: quoted_figures.fill_in_figures(text) for path, text in notebooks.items()}
    if not useless + [path for path, text in texts.items() if _write_changed(path, text)]:
        print("nothing changed")
    for problem in problems.values():
        print(f"not in the tables: {problem}", file=sys.stderr)
    return 1 if problems else 0
