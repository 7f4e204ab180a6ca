"""The best and the worst result against the libraries; results of runs and of recorded/ as Markdown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.pairs.pair import Pair, short
from common.pairs.sizes import class_of
from common.record.archive import added, current, recorded, recorded_classes, together
from common.record.files import Problems, classes, write_text
from common.record.result import UNTIMED, PairResult, Record, Row
from common.show import tables
from common.show.formats import digits
from common.show.tables import HEADINGS, NOTHING, SIZE_HEADINGS, cells, head, line, variant

FEWEST = 3  # operations with a library: the table itself shows the best of fewer
Files = Sequence[tuple[Path, Record]]
NOT_ALONE = "measured while others used the machine, too: "
BOUND = "launch-bound: "
LEFT_OUT = ("allocates", "its first calls")  # remarks that say nothing about a time


def fastest_library(pair: PairResult, row: Row) -> tuple[float, str] | None:
    """(The library's time / the variant's time, the library's label) for the fastest library of the variant's
    precision.

    None if there is no such library, or if one was too short to be timed: that one may be the fastest.
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
    """Lines that name the best and the worst pair against its fastest library. No lines for fewer than FEWEST pairs.

    A pair counts with its best variant. A pair with a variant that was too short to be timed does not count.
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
    """Write the rows of a run as a table under their origin, then the remarks on them. Raises RecordError."""
    lines = [f"*{tables.origin(record)}*", "", *head(SIZE_HEADINGS)]
    said: list[str] = []
    for pair in record.pairs:
        for row in pair.rows:
            lines.append(line([pair.name, pair.size, variant(row), *cells(pair, row, spread=True)]))
            said += [f"{pair.name} {pair.size}, {variant(row)}: {text}" for text in tables.remarks(pair, row)]
    write_text(path, "\n".join([*lines, "", *(f"- {text}" for text in [*said, *standings(record)])]).rstrip() + "\n")


def by_device(files: Files, is_current: Callable[[PairResult], bool], pairs: Sequence[Pair]) -> str:
    """What is recorded of a chapter at its default sizes, one table per device. `pairs`: all of the chapter."""
    texts = []
    for of_device, record in _devices(files):
        rows = [(pair, row) for pair in record.pairs for row in pair.rows]
        lines = [tables.result_line([pair.name], pair, row, is_current(pair)) for pair, row in rows]
        page = of_device[0][0].with_name(f"{record.pairs[0].chapter}.md")
        texts.append("\n".join([tables.source(*of_device), "", *head(HEADINGS), *lines]))
        results = {result.name: result for result in record.pairs}
        missing = [pair.name for pair in pairs if pair.name not in results]
        missing += [of for pair in pairs if pair.name in results for of in _added(pair, results[pair.name])]
        if missing:
            texts.append(f"Not recorded: {', '.join(missing)}.")
        if shared := [pair.name for pair in record.pairs if pair.neighbours and is_current(pair)]:
            texts.append(f"{NOT_ALONE.capitalize()}{', '.join(shared)}.")
        texts.append(f"All sizes, with the spread of the times: {tables.link(page)}.")
    return "\n\n".join(texts) or NOTHING


def _added(pair: Pair, result: PairResult) -> list[str]:
    return [f"{pair.name} {short(label)}" for label in added(pair, result)]


def pages(chapter: str, pairs: Sequence[Pair], problems: Problems | None = None) -> dict[Path, str]:
    """recorded/<device>/<chapter>.md: what is recorded of a chapter at all sizes, one table per class of sizes.

    `problems`: as in `archive.recorded`.
    """
    found: dict[Path, list[str]] = {}
    for name in recorded_classes(chapter):
        for files, record in _devices(recorded(chapter, name, problems=problems)):
            title = f"# {chapter} on {record.environment['device']['name']}"
            page = found.setdefault(files[0][0].with_name(f"{chapter}.md"), [title])
            page.append(_section(name, files, record, pairs))
    return {path: "\n\n".join(parts) + "\n" for path, parts in found.items()}


def _section(name: str, files: Files, record: Record, pairs: Sequence[Pair]) -> str:
    """The section of one class. Only rows that are not stale count for best and worst."""
    is_current = current(pairs)
    lines = [
        tables.result_line([pair.name, pair.size], pair, row, is_current(pair), spread=True)
        for pair in record.pairs
        for row in pair.rows
    ]
    known = [pair for pair in record.pairs if is_current(pair)]
    best = standings(replace(record, pairs=known))
    said = [f"- {text}" for text in [*best, *_not_recorded(record, name, pairs), *_remarks(known)]]
    return "\n".join([f"## {name}", "", tables.source(*files), "", *head(SIZE_HEADINGS), *lines, "", *said]).rstrip()


def _devices(files: Files) -> Iterator[tuple[Files, Record]]:
    """For each device, that with the most recorded first: its files, and one record with all that they contain."""
    for folder in sorted(dict.fromkeys(path.parent for path, _ in files), key=classes, reverse=True):
        of_device = [(path, record) for path, record in files if path.parent == folder]
        if record := together([each for _, each in of_device]):
            yield of_device, record


def _remarks(results: Sequence[PairResult]) -> list[str]:
    """Lines on how results were measured: beside other work, by a host that was too slow, and what else was noted."""
    rows = [(result, row) for result in results for row in result.rows]
    found = {f"{result.name} {result.size}, {variant(row)}": tables.remarks(result, row) for result, row in rows}
    notes = [(of, text) for of, texts in found.items() for text in texts if not text.startswith(LEFT_OUT)]
    slow = [(each, each.arms["baseline"].bound) for each in results if "baseline" in each.arms]
    bound = [f"{each.name} {each.size}, baseline ({text})" for each, text in slow if text]
    bound += [f"{of} ({text.removeprefix(BOUND)})" for of, text in notes if text.startswith(BOUND)]
    lists = {NOT_ALONE: [f"{each.name} {each.size}" for each in results if each.neighbours], BOUND: bound}
    said = [f"{what}{'; '.join(each)}" for what, each in lists.items() if each]
    return [*said, *(f"{of}: {text}" for of, text in notes if not text.startswith(BOUND))]


def _not_recorded(record: Record, name: str, pairs: Sequence[Pair]) -> list[str]:
    """Lines that name what a record lacks of a class: sizes, and variants that were added since.

    `cpu`, which replaces the default on a CPU, is left out.
    """
    found = {(pair.name, "default" if name == "default" else pair.size) for pair in record.pairs}
    said = []
    for pair in pairs:
        sizes = [size for size in pair.sizes if class_of(size) == name and size != "cpu"]
        if lacking := [size for size in sizes if (pair.name, size) not in found]:
            said.append(f"not recorded: {pair.name} {'at any size' if lacking == sizes else ', '.join(lacking)}")
        results = [result for result in record.pairs if result.name == pair.name]
        without: dict[str, list[str]] = {}
        for result in results:
            for of in _added(pair, result):
                without.setdefault(of, []).append(result.size)
        for of, lacking in without.items():
            said.append(f"not recorded: {of} {'at any size' if len(lacking) == len(results) else ', '.join(lacking)}")
    return said
