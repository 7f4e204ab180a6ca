"""Pages and tables of what is recorded of a chapter: recorded/<device>/<chapter>.md, and a table in its README."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.pairs.pair import Pair, class_of, short
from common.record.files import Problems, count_classes
from common.record.outcome import Cause
from common.record.record_file import combine_records
from common.record.result import PairResult, Record
from common.record.store import added_variants, chapter_records, current_filter, recorded_classes
from common.show import tables
from common.show.layout import markdown
from common.show.summary import best_and_worst, class_averages
from common.show.tables import HEADINGS, NOTHING, by_cause, entries_of, name_with_size

NOT_ABOUT_TIME = (Cause.ALLOCATES, Cause.COMPILED_LONG)  # say nothing about a time
Files = Sequence[tuple[Path, Record]]
OTHER_LOAD = "other load while measured: "


def tables_by_device(files: Files, is_current: Callable[[PairResult], bool], pairs: Sequence[Pair]) -> str:
    """What is recorded of a chapter at its default sizes, one table per device. `pairs`: all of the chapter."""
    texts = []
    for of_device, record in _devices(files):
        page = of_device[0][0].with_name(f"{record.pairs[0].chapter}.md")
        texts += [tables.source(*of_device), _table(record.pairs, is_current, spread=False)]
        texts += [f"{text[0].upper()}{text[1:]}." for text in _left_out_lines(record.pairs, is_current)]
        results = {result.name: result for result in record.pairs}
        missing = [pair.name for pair in pairs if pair.name not in results]
        missing += [name for pair in pairs if pair.name in results for name in _added_names(pair, results[pair.name])]
        if missing:
            texts.append(f"Not recorded: {', '.join(missing)}.")
        if shared := [pair.name for pair in record.pairs if pair.neighbours and is_current(pair)]:
            texts.append(f"{OTHER_LOAD.capitalize()}{', '.join(shared)}.")
        texts.append(f"All sizes, with the spread of the times: {tables.link(page)}.")
    return "\n\n".join(texts) or NOTHING


def _table(results: Sequence[PairResult], is_current: Callable[[PairResult], bool], spread: bool) -> str:
    """Results as Markdown, without those whose pair has changed since. `spread`: also of the times."""
    entries = [entry for result in filter(is_current, results) for entry in entries_of(result, spread=spread)]
    return markdown(HEADINGS, entries) or NOTHING


def _left_out_lines(results: Sequence[PairResult], is_current: Callable[[PairResult], bool]) -> list[str]:
    """A line that names the results which a table lacks, if there are any."""
    names = ", ".join(dict.fromkeys(name_with_size(result) for result in results if not is_current(result)))
    return [f"left out, because the pair has changed since: {names}"] if names else []


def _added_names(pair: Pair, result: PairResult) -> list[str]:
    return [f"{pair.name} {short(label)}" for label in added_variants(pair, result)]


def pages(chapter: str, pairs: Sequence[Pair], problems: Problems | None = None) -> dict[Path, str]:
    """recorded/<device>/<chapter>.md: what is recorded of a chapter at all sizes, one table per class of sizes.

    `problems`: as in `store.chapter_records`.
    """
    pages: dict[Path, list[str]] = {}
    for name in recorded_classes(chapter):
        for files, record in _devices(chapter_records(chapter, name, problems=problems)):
            title = f"# {chapter} on {record.environment['device']['name']}"
            page = pages.setdefault(files[0][0].with_name(f"{chapter}.md"), [title])
            page.append(_section(name, files, record, pairs))
    return {path: "\n\n".join(parts) + "\n" for path, parts in pages.items()}


def _section(name: str, files: Files, record: Record, pairs: Sequence[Pair]) -> str:
    """The section of one class. Only rows that are not stale count for best and worst."""
    is_current = current_filter(pairs)
    current_results = [pair for pair in record.pairs if is_current(pair)]
    fresh = replace(record, pairs=current_results)
    shared = [name_with_size(result) for result in current_results if result.neighbours]
    remarks = [*class_averages(fresh), *best_and_worst(fresh), *_not_recorded(record, name, pairs)]
    remarks += _left_out_lines(record.pairs, is_current)
    remarks += [f"{OTHER_LOAD}{', '.join(shared)}"] if shared else []
    remarks += by_cause(current_results, left_out=NOT_ABOUT_TIME)
    table = _table(record.pairs, is_current, spread=True)
    return "\n".join([f"## {name}", "", tables.source(*files), "", table, "", *map("- {}".format, remarks)]).rstrip()


def _devices(files: Files) -> Iterator[tuple[Files, Record]]:
    """For each device, that with the most recorded first: its files, and one record with all that they contain."""
    for folder in sorted(dict.fromkeys(path.parent for path, _ in files), key=count_classes, reverse=True):
        of_device = [(path, record) for path, record in files if path.parent == folder]
        if record := combine_records([record for _, record in of_device]):
            yield of_device, record


def _not_recorded(record: Record, name: str, pairs: Sequence[Pair]) -> list[str]:
    """Lines that name what a record lacks of a class: sizes, and variants that were added since.

    `cpu`, which replaces the default on a CPU, is left out.
    """
    recorded_sizes = {(pair.name, "default" if name == "default" else pair.size) for pair in record.pairs}
    lines = []
    for pair in pairs:
        sizes = [size for size in pair.sizes if class_of(size) == name and size != "cpu"]
        if missing := [size for size in sizes if (pair.name, size) not in recorded_sizes]:
            lines.append(f"not recorded: {pair.name} {'at any size' if missing == sizes else ', '.join(missing)}")
        results = [result for result in record.pairs if result.name == pair.name]
        without: dict[str, list[str]] = {}
        for result in results:
            for label in _added_names(pair, result):
                without.setdefault(label, []).append(result.size)
        for label, missing in without.items():
            sizes_text = "at any size" if len(missing) == len(results) else ", ".join(missing)
            lines.append(f"not recorded: {label} {sizes_text}")
    return lines
