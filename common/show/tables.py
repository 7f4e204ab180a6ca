"""Recorded results as cells of a table and as Markdown: rows, headings, where and when a record was made."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from common.pairs.pair import short
from common.record import stats
from common.record.result import Arm, PairResult, Record, Row
from common.show import formats
from common.show.formats import digits, seconds

HEADINGS = (
    "pair", "variant", "verdict", "ratio [95 % interval]", "time", "rate", "of limit / datasheet", "library / variant",
)  # fmt: skip
SIZE_HEADINGS = (
    "pair", "size", *HEADINGS[1:4], "time ± half its interquartile range", *HEADINGS[5:-1], "library / variant (time)",
)  # fmt: skip
LIMIT_HEADINGS = ("resource", "measured", "datasheet", "how", "datasheet's source")
GRADES = ((1.02, "A+"), (0.98, "A"), (0.9, "B"), (0.75, "C"), (0.5, "D"))
NOTHING = "Nothing is recorded yet."
APART = 1.05  # the quotient of two median times may lie this far outside the interval of their ratio
WARM = "fits in the cache: its limit is not memory bandwidth"  # older records say so of samples with a cold L2, too


class Measured(Protocol):
    """What says where, when and with which software it was made: a record, findings, a machine's datasheet."""

    @property
    def environment(self) -> dict[str, Any]: ...


def ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    interval = f" [{digits(row.interval[0])}, {digits(row.interval[1])}]" if row.interval else ""
    return f"{digits(row.ratio)}x{interval}" + (f" {row.precision}" if row.precision else "")


def share(pair: PairResult, row: Row) -> str:
    """The share of the measured limit / of the datasheet's limit (%), and the resource."""
    arm = pair.arms.get(row.variant)
    if row.ratio is None or arm is None or arm.of_limit is None:
        return ""
    sheet = f" / {arm.of_datasheet:.0%}" if arm.of_datasheet is not None else ""
    return f"{arm.of_limit:.0%}{sheet} {(arm.limit_by or pair.limit_by).removesuffix('_bytes').removesuffix('_flops')}"


def time(arm: Arm, spread: bool) -> str:
    """An arm's median; with `spread`, also half the interquartile range of its samples, in % of the median."""
    return seconds(arm.median_s) + (f" ±{stats.spread(arm.seconds):.1%}" if spread else "")


def times(pair: PairResult, row: Row, spread: bool = False) -> str:
    arms = [pair.arms[label] for label in (row.versus, row.variant) if row.ratio is not None]
    return " -> ".join(time(arm, spread) for arm in arms)


def rate(pair: PairResult, row: Row) -> str:
    """What a variant moves or computes per second, counted by the useful minimum: GB/s or TFLOP/s."""
    if row.ratio is None or not pair.cost.get(pair.limit_by):
        return ""
    return formats.rate(pair.cost[pair.limit_by] / pair.arms[row.variant].median_s, pair.limit_by)


def variant(row: Row) -> str:
    """`fused`, or `fused vs vectorized` if the row is not against the baseline."""
    versus = "" if row.versus == "baseline" else f" vs {short(row.versus)}"
    return short(row.variant) + versus


def libraries(pair: PairResult, row: Row, spread: bool = False) -> str:
    """Each library's time / the variant's time, then a grade, or the row's precision if the library's differs.

    A row whose verdict is `unsure` has no grade.
    """
    parts = []
    for label, value in row.vs_library.items():
        kind, _, name = label.partition("/")
        precision = value.get("precision", "")
        graded = "" if row.verdict == "unsure" else grade(value["ratio"])
        said = "yardstick" if kind == "yardstick" else row.precision or graded
        if precision:  # the library's precision, which is then the row's too
            said = ", ".join(filter(None, (graded, f"both {precision}")))
            name = "" if name == precision else name
        own = f"({time(pair.arms[label], spread)})" if spread else ""
        parts.append(" ".join(filter(None, (f"{digits(value['ratio'])}x", name, said, own))))
    return ", ".join(parts)


def grade(ratio: float) -> str:
    """The grade of library time / variant time. A+: the variant is at least 2 % faster; F: over twice as long."""
    return next((name for least, name in GRADES if ratio >= least), "F")


def cells(pair: PairResult, row: Row, spread: bool = False) -> list[str]:
    """The cells under HEADINGS after pair and variant. With `spread`, also the time of each library call."""
    figures = (times(pair, row, spread), rate(pair, row), share(pair, row), libraries(pair, row, spread))
    return [row.verdict, ratio(row), *figures]


def remarks(pair: PairResult, row: Row) -> list[str]:
    """The reason of a row's verdict, then the variant's notes: they are shown once, in its row against the baseline.

    Then a line if the two times tell another story than the ratio: they are medians of their own.
    """
    notes = [note for note in row.notes if row.versus == "baseline" and not (pair.clock == "device" and note == WARM)]
    return [text for text in (row.reason, *notes, _apart(pair, row)) if text]


def _apart(pair: PairResult, row: Row) -> str:
    if row.ratio is None or row.interval is None:
        return ""
    quotient = pair.arms[row.versus].median_s / pair.arms[row.variant].median_s
    low, high = row.interval
    if low / APART <= quotient <= high * APART:
        return ""
    return f"its time changes between rounds: by the two medians it is {digits(quotient)}x"


def limit_rows(limits: dict[str, dict[str, Any]]) -> list[list[str]]:
    """The cells under LIMIT_HEADINGS, one row per resource."""
    rows = []
    for key, limit in limits.items():
        peaks = [limit["measured"], limit["datasheet"]]
        shown = [formats.rate(peak, key, formats.four) if peak else "" for peak in peaks]
        rows.append([key, *shown, limit["how"], limit["source"]])
    return rows


def origin(record: Measured) -> str:
    """The device and date of a record."""
    dates = record.environment.get("dates", [record.environment["date"][:10]])
    return f"{record.environment['device']['name']}, {' and '.join(dates)}"


def line(cells: Iterable[object]) -> str:
    """One row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def head(headings: Sequence[str]) -> list[str]:
    return [line(headings), "| --- " * len(headings) + "|"]


def result_line(name: list[str], pair: PairResult, row: Row, is_current: bool, spread: bool = False) -> str:
    """A row of a recorded result; without figures if the pair has changed since."""
    stale = ["stale: the pair has changed since", *[""] * (len(HEADINGS) - 3)]
    return line([*name, variant(row), *(cells(pair, row, spread) if is_current else stale)])


def source(*files: tuple[Path, Measured]) -> str:
    """Where, when and with which software files were recorded: one line for equal origins, with links and pairs."""
    links: dict[str, list[str]] = {}
    for path, record in files:
        software = ", ".join(f"{name} {version}" for name, version in record.environment["versions"].items())
        pairs = record.pairs if isinstance(record, Record) and len(files) > 1 else []
        names = ", ".join(dict.fromkeys(pair.name for pair in pairs))
        made = links.setdefault(f"Recorded on {origin(record)} ({software})", [])
        made.append(link(path) + (f" ({names})" if names else ""))
    return "\n\n".join(f"{where}: {', '.join(found)}" for where, found in links.items())


def link(path: Path) -> str:
    return f"[{path.parent.name}/{path.name}](/recorded/{path.parent.name}/{path.name})"
