"""A run in a few words: who stands best and worst against the libraries. Runs, and what is recorded, as tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.pairs.pair import Pair
from common.pairs.sizes import class_of
from common.pairs.source import source_hash
from common.record.archive import recorded, recorded_classes, together
from common.record.files import write_text
from common.record.result import UNTIMED, PairResult, Record, Row
from common.show.report import HEADINGS, NOTHING, cells, digits, head, line, link, made, origin, source, variant

SIZE_HEADINGS = (
    "pair", "size", *HEADINGS[1:4], "time ± half its interquartile range", *HEADINGS[5:-1], "library / variant (time)",
)  # fmt: skip
FEWEST = 3  # operations with a library: of fewer the table itself tells who is best


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

    Where a variant was too short to be timed, nobody knows which is the best.
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


def markdown(record: Record) -> str:
    """The rows of a run as a Markdown table under its origin, then what must be said of them."""
    lines = [f"*{origin(record)}*", "", *head(SIZE_HEADINGS)]
    said: list[str] = []
    for pair in record.pairs:
        for row in pair.rows:
            lines.append(f"| {' | '.join([pair.name, pair.size, variant(row), *cells(pair, row, spread=True)])} |")
            said += _said(pair, row)
    return "\n".join([*lines, "", *(f"- {text}" for text in [*said, *standings(record)])]).rstrip() + "\n"


def _said(pair: PairResult, row: Row) -> list[str]:
    texts = [row.reason, *(row.notes if row.versus == "baseline" else [])]
    return [f"{pair.name} {pair.size}, {variant(row)}: {text}" for text in texts if text]


def save_markdown(record: Record, path: Path) -> None:
    """Raises RecordError."""
    write_text(path, markdown(record))


def by_device(files: Sequence[tuple[Path, Record]], hashes: dict[str, str]) -> str:
    """What is recorded of a chapter at its default sizes, a table a device. Of a pair that has changed no figures."""
    texts = []
    for of_device, record in _devices(files):
        lines = [line([pair.name], pair, row, hashes) for pair in record.pairs for row in pair.rows]
        texts.append("\n".join([sources(of_device), "", *head(HEADINGS), *lines]))
        if missing := set(hashes) - {pair.name for pair in record.pairs}:
            texts.append(f"Not recorded: {', '.join(name for name in hashes if name in missing)}.")
    return "\n\n".join(texts) or NOTHING


def by_class(chapter: str, pairs: list[Pair]) -> str:
    """The same at its other sizes: folded tables, one a class and device."""
    names = [name for name in recorded_classes(chapter) if name != "default"]
    found = [(name, *device) for name in names for device in _devices(recorded(chapter, name))]
    return "\n\n".join(_folded(name, files, record, pairs) for name, files, record in found)


def _devices(files: Sequence[tuple[Path, Record]]) -> Iterator[tuple[list[tuple[Path, Record]], Record]]:
    """Of each device its files, and all that is in them."""
    for folder in dict.fromkeys(path.parent for path, _ in files):
        of_device = [(path, record) for path, record in files if path.parent == folder]
        if record := together([each for _, each in of_device]):
            yield of_device, record


def sources(files: Sequence[tuple[Path, Record]]) -> str:
    """Where, when and with what several files were recorded, said once, and which pairs each of them has."""
    if len(files) == 1:
        return source(*files[0])
    links: dict[str, list[str]] = {}
    for path, record in files:
        names = ", ".join(dict.fromkeys(pair.name for pair in record.pairs))
        links.setdefault(made(record), []).append(f"{link(path)} ({names})")
    return "\n\n".join(f"{where}: {', '.join(found)}" for where, found in links.items())


def _not_recorded(record: Record, name: str, pairs: list[Pair]) -> list[str]:
    """The sizes in a class that a record lacks, pair by pair."""
    found = {(pair.name, pair.size) for pair in record.pairs}
    sizes = {pair.name: [size for size in pair.sizes if class_of(size) == name] for pair in pairs}
    lacking = {pair: [size for size in named if (pair, size) not in found] for pair, named in sizes.items()}
    said = {
        pair: "at any size" if named == sizes[pair] else ", ".join(named) for pair, named in lacking.items() if named
    }
    return [f"not recorded: {pair} {text}" for pair, text in said.items()]


def _folded(name: str, files: Sequence[tuple[Path, Record]], record: Record, pairs: list[Pair]) -> str:
    """Markdown inside HTML: GitHub asks for empty lines around it. Best and worst are of what has not changed since."""
    hashes = {pair.name: source_hash(pair) for pair in pairs}
    lines = [line([pair.name, pair.size], pair, row, hashes, True) for pair in record.pairs for row in pair.rows]
    fresh = [pair for pair in record.pairs if hashes.get(pair.name) == pair.source_hash]
    rows = f"{len(lines)} row{'s' * (len(lines) != 1)}"
    title = f"<details><summary>{name}, {origin(record)}: {rows}</summary>"
    said = [f"- {text}" for text in [*standings(replace(record, pairs=fresh)), *_not_recorded(record, name, pairs)]]
    return "\n".join([title, "", sources(files), "", *head(SIZE_HEADINGS), *lines, "", *said, "", "</details>"])
