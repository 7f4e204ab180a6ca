"""The best and the worst result against the libraries; the results of a run as Markdown."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, geometric_mean

from common.pairs.pair import class_of
from common.record.files import write_text
from common.record.outcome import UNTIMED
from common.record.result import PairResult, Record, Row
from common.record.store import CLASSES
from common.show import stats_table, tables
from common.show.formats import digits
from common.show.layout import markdown

FEWEST = 3  # operations with a library: the table itself shows the best of fewer


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
        fastest = [(row, fastest_library(pair, row)) for row in _timed_rows(pair) if not row.precision]
        ratios = [(best[0], f"{pair.name} {pair.size} {tables.variant(row)}") for row, best in fastest if best]
        best_ratios += [max(ratios)] if ratios else []
    if len(best_ratios) < FEWEST:
        return []
    words = "pair, by its best variant, against its fastest library"
    extremes = {"best": max(best_ratios), "worst": min(best_ratios)}
    return [f"{which} {words}: {name}, {digits(ratio)}x" for which, (ratio, name) in extremes.items()]


def _timed_rows(pair: PairResult) -> list[Row]:
    """A pair's rows against the baseline; none if one of them was not timed."""
    rows = [row for row in pair.rows if row.versus == "baseline"]
    return [] if any(row.verdict in UNTIMED for row in rows) else rows


def best_row(pair: PairResult, precision: str = "") -> Row | None:
    """The row of a pair's fastest version of this precision. None if it has none, or if a version was not timed."""
    timed = [row for row in _timed_rows(pair) if row.ratio and row.precision == precision]
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
    remarks = [*tables.by_cause(record.pairs), *class_averages(record), *best_and_worst(record)]
    table = markdown(tables.HEADINGS, tables.table(record.pairs, spread=True))
    if stats:
        table += "\n\n" + markdown(stats_table.HEADINGS, stats_table.stats_entries(record))
        remarks = [*stats_table.stats_remarks(record), *remarks]
    lines = [f"*{tables.origin(record)}*", "", table, "", *(f"- {text}" for text in remarks)]
    write_text(path, "\n".join(lines).rstrip() + "\n")
