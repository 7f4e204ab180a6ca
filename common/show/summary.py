"""The best and the worst result against the libraries; results of runs and of recorded/ as Markdown."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, geometric_mean

from common.pairs.pair import Pair, class_of, short
from common.record.files import Problems, count_classes, write_text
from common.record.outcome import UNTIMED, Cause
from common.record.record_file import combine_records
from common.record.result import PairResult, Record, Row
from common.record.store import CLASSES, added_variants, chapter_records, current_filter, recorded_classes
from common.show import stats_table, tables
from common.show.formats import digits
from common.show.layout import markdown
from common.show.tables import HEADINGS, NOTHING, by_cause, entries_of, name_with_size, variant

NOT_ABOUT_TIME = (Cause.ALLOCATES, Cause.COMPILED_LONG)  # say nothing about a time
FEWEST = 3  # operations with a library: the table itself shows the best of fewer
Files = Sequence[tuple[Path, Record]]
OTHER_LOAD = "other load while measured: "


def fastest_library(pair: PairResult, row: Row) -> tuple[float, str] | None:
    """(The library's time / the variant's time, the library's label) for the fastest library of the variant's
    precision.

    None if there is no such library, or if one was too short to be timed: that one may be the fastest.
    """
    timed = {label for other in pair.rows for label in other.vs_library}
    if any(_is_library(label) and label not in timed for label in pair.arms):
        return None
    libraries = [(label, value) for label, value in row.vs_library.items() if _is_library(label)]
    same = [(value["ratio"], label) for label, value in libraries if value.get("precision", "") == row.precision]
    return min(same, default=None)


def _is_library(label: str) -> bool:
    return label.split("/")[0] == "library"


def best_and_worst(record: Record) -> list[str]:
    """Lines that name the best and the worst pair against its fastest library. No lines for fewer than FEWEST pairs.

    A pair counts with its best variant. A pair with a variant that was too short to be timed does not count.
    """
    best_ratios = []
    for pair in record.pairs:
        rows = [row for row in pair.rows if row.versus == "baseline"]
        if any(row.verdict in UNTIMED for row in rows):
            continue
        fastest = [(row, fastest_library(pair, row)) for row in rows if not row.precision]
        ratios = [(best[0], f"{pair.name} {pair.size} {variant(row)}") for row, best in fastest if best]
        best_ratios += [max(ratios)] if ratios else []
    if len(best_ratios) < FEWEST:
        return []
    words = "pair, by its best variant, against its fastest library"
    extremes = {"best": max(best_ratios), "worst": min(best_ratios)}
    return [f"{which} {words}: {name}, {digits(ratio)}x" for which, (ratio, name) in extremes.items()]


def best_row(pair: PairResult, precision: str = "") -> Row | None:
    """The row of a pair's fastest version of this precision. None if it has none, or if a version was not timed."""
    rows = [row for row in pair.rows if row.versus == "baseline"]
    if any(row.verdict in UNTIMED for row in rows):
        return None
    timed = [row for row in rows if row.ratio and row.precision == precision]
    return max(timed, key=lambda row: row.ratio or 0, default=None)


def class_averages(record: Record) -> list[str]:
    """A line for each class of sizes: how near the limit and how far ahead of libraries the best versions are.

    A pair counts at each of its sizes. The mean of the shares of the limit is arithmetic, that of library time /
    version time geometric; a pair without limit or library is not in that mean.
    """
    results: dict[str, list[tuple[PairResult, Row]]] = {}
    for pair in record.pairs:
        if row := best_row(pair):
            results.setdefault(class_of(pair.size), []).append((pair, row))
    order = [*CLASSES, *sorted(results.keys() - CLASSES)]
    return [_average(name, results[name]) for name in order if name in results]


def _average(name: str, best: Sequence[tuple[PairResult, Row]]) -> str:
    arms = [pair.arms[row.variant] for pair, row in best]
    shares = [arm.of_limit for arm in arms if arm.of_limit is not None]
    ratios = [fastest[0] for fastest in (fastest_library(pair, row) for pair, row in best) if fastest]
    means = [(f"mean {tables.percent(fmean(shares))} of the limit", len(shares))] if shares else []
    means += [(f"geometric mean {digits(geometric_mean(ratios))}x vs library", len(ratios))] if ratios else []
    texts = [text + (f" (of {count})" if count < len(best) else "") for text, count in means]
    counts = Counter(pair.name for pair, _ in best)
    sizes = f" at {len(best)} sizes" if len(best) > len(counts) else ""
    subject = f"{name}, best versions of {len(counts)} pair{'s' if len(counts) > 1 else ''}{sizes}"
    return f"{subject}: {', '.join(texts) or 'no limit and no library'}"


def save_markdown(record: Record, path: Path, stats: bool = False) -> None:
    """Write the rows of a run as a table under their origin, then the remarks on them. Raises RecordError.

    `stats`: also a table of all candidates' samples, errors and memory.
    """
    remarks = [*by_cause(record.pairs), *class_averages(record), *best_and_worst(record)]
    table = markdown(HEADINGS, tables.table(record.pairs, spread=True))
    if stats:
        table += "\n\n" + markdown(stats_table.HEADINGS, stats_table.stats_entries(record))
        remarks = [*stats_table.stats_remarks(record), *remarks]
    lines = [f"*{tables.origin(record)}*", "", table, "", *(f"- {text}" for text in remarks)]
    write_text(path, "\n".join(lines).rstrip() + "\n")


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
