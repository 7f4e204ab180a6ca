"""A run in a few words: who stands best and worst against the libraries. Runs, and what is recorded, as Markdown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.pairs.pair import Pair
from common.pairs.sizes import class_of
from common.record.archive import current, recorded, recorded_classes, together
from common.record.files import Problems, write_text
from common.record.result import UNTIMED, PairResult, Record, Row
from common.show import tables
from common.show.formats import digits
from common.show.tables import HEADINGS, NOTHING, SIZE_HEADINGS, cells, head, line, variant

FEWEST = 3  # operations with a library: of fewer the table itself tells which is best
Files = Sequence[tuple[Path, Record]]


def fastest_library(pair: PairResult, row: Row) -> tuple[float, str] | None:
    """(its time / the variant's, its label), of the library calls in the variant's own precision.

    None where there is none; and where one was too short to be timed, for that may be the fastest.
    """
    timed = {label for each in pair.rows for label in each.vs_library}
    if any(_is_library(label) and label not in timed for label in pair.arms):
        return None
    found = [(label, value) for label, value in row.vs_library.items() if _is_library(label)]
    same = [(value["ratio"], label) for label, value in found if value.get("precision", "") == row.precision]
    return min(same, default=None)


def _is_library(label: str) -> bool:
    return label.split("/")[0] == "library"


def standings(record: Record) -> list[str]:
    """The best and the worst operation against its fastest library, each by its best variant; nothing of too few.

    Where a variant was too short to be timed, the best one is not known.
    """
    standing = []
    for pair in record.pairs:
        rows = [row for row in pair.rows if row.versus == "baseline"]
        if any(row.verdict in UNTIMED for row in rows):
            continue
        of_own = [(row, fastest_library(pair, row)) for row in rows if not row.precision]
        ratios = [(found[0], f"{pair.name} {pair.size} {variant(row)}") for row, found in of_own if found]
        standing += [max(ratios)] if ratios else []
    if len(standing) < FEWEST:
        return []
    words = "pair, by its best variant, against its fastest library"
    named = {"best": max(standing), "worst": min(standing)}
    return [f"{which} {words}: {name}, {digits(ratio)}x" for which, (ratio, name) in named.items()]


def save_markdown(record: Record, path: Path) -> None:
    """The rows of a run as a table under its origin, then what must be said of them. Raises RecordError."""
    lines = [f"*{tables.origin(record)}*", "", *head(SIZE_HEADINGS)]
    said: list[str] = []
    for pair in record.pairs:
        for row in pair.rows:
            lines.append(line([pair.name, pair.size, variant(row), *cells(pair, row, spread=True)]))
            said += [f"{pair.name} {pair.size}, {variant(row)}: {text}" for text in tables.remarks(pair, row)]
    write_text(path, "\n".join([*lines, "", *(f"- {text}" for text in [*said, *standings(record)])]).rstrip() + "\n")


def by_device(files: Files, is_current: Callable[[PairResult], bool], names: Sequence[str]) -> str:
    """What is recorded of a chapter at its default sizes, a table a device. `names`: of all its pairs."""
    texts = []
    for of_device, record in _devices(files):
        rows = [(pair, row) for pair in record.pairs for row in pair.rows]
        lines = [tables.result_line([pair.name], pair, row, is_current(pair)) for pair, row in rows]
        page = of_device[0][0].with_name(f"{record.pairs[0].chapter}.md")
        texts.append("\n".join([tables.source(*of_device), "", *head(HEADINGS), *lines]))
        if missing := [name for name in names if name not in {pair.name for pair in record.pairs}]:
            texts.append(f"Not recorded: {', '.join(missing)}.")
        texts.append(f"All sizes, with the spread of the times: {tables.link(page)}.")
    return "\n\n".join(texts) or NOTHING


def pages(chapter: str, pairs: Sequence[Pair], problems: Problems | None = None) -> dict[Path, str]:
    """What is recorded of a chapter at all its sizes: recorded/<device>/<chapter>.md, a table for each class.

    `problems`: as of `archive.recorded`.
    """
    found: dict[Path, list[str]] = {}
    for name in recorded_classes(chapter):
        for files, record in _devices(recorded(chapter, name, problems=problems)):
            title = f"# {chapter} on {record.environment['device']['name']}"
            page = found.setdefault(files[0][0].with_name(f"{chapter}.md"), [title])
            page.append(_section(name, files, record, pairs))
    return {path: "\n\n".join(parts) + "\n" for path, parts in found.items()}


def _section(name: str, files: Files, record: Record, pairs: Sequence[Pair]) -> str:
    """Best and worst are of what has not changed since."""
    is_current = current(pairs)
    lines = [
        tables.result_line([pair.name, pair.size], pair, row, is_current(pair), spread=True)
        for pair in record.pairs
        for row in pair.rows
    ]
    best = standings(replace(record, pairs=[pair for pair in record.pairs if is_current(pair)]))
    said = [f"- {text}" for text in [*best, *_not_recorded(record, name, pairs)]]
    return "\n".join([f"## {name}", "", tables.source(*files), "", *head(SIZE_HEADINGS), *lines, "", *said]).rstrip()


def _devices(files: Files) -> Iterator[tuple[Files, Record]]:
    """Of each device its files, and all that is in them."""
    for folder in dict.fromkeys(path.parent for path, _ in files):
        of_device = [(path, record) for path, record in files if path.parent == folder]
        if record := together([each for _, each in of_device]):
            yield of_device, record


def _not_recorded(record: Record, name: str, pairs: Sequence[Pair]) -> list[str]:
    """The sizes in a class that a record lacks, pair by pair; `cpu`, which a CPU takes for the default, is that."""
    found = {(pair.name, "default" if name == "default" else pair.size) for pair in record.pairs}
    said = []
    for pair in pairs:
        sizes = [size for size in pair.sizes if class_of(size) == name and size != "cpu"]
        if lacking := [size for size in sizes if (pair.name, size) not in found]:
            said.append(f"not recorded: {pair.name} {'at any size' if lacking == sizes else ', '.join(lacking)}")
    return said
