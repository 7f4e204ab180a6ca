"""What is recorded, as the cells of a table and as Markdown: rows, headings, where and when a record was made."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

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


class Measured(Protocol):
    """A record, findings, a machine's sheet: what says where, when and with what it was made."""

    @property
    def environment(self) -> dict[str, Any]: ...


def ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    interval = f" [{digits(row.interval[0])}, {digits(row.interval[1])}]" if row.interval else ""
    return f"{digits(row.ratio)}x{interval}" + (f" {row.precision}" if row.precision else "")


def share(pair: PairResult, row: Row) -> str:
    """% of the measured limit / of the datasheet's, and the resource."""
    arm = pair.arms.get(row.variant)
    if row.ratio is None or arm is None or arm.of_limit is None:
        return ""
    sheet = f" / {arm.of_datasheet:.0%}" if arm.of_datasheet is not None else ""
    return f"{arm.of_limit:.0%}{sheet} {(arm.limit_by or pair.limit_by).removesuffix('_bytes').removesuffix('_flops')}"


def time(arm: Arm, spread: bool) -> str:
    """Its median, and how far the middle half of its samples lies apart: +- half of that."""
    return seconds(arm.median_s) + (f" ±{stats.spread(arm.seconds):.1%}" if spread else "")


def times(pair: PairResult, row: Row, spread: bool = False) -> str:
    arms = [pair.arms[label] for label in (row.versus, row.variant) if row.ratio is not None]
    return " -> ".join(time(arm, spread) for arm in arms)


def rate(pair: PairResult, row: Row) -> str:
    """What a variant moves or computes per second, of the useful minimum: GB/s or TFLOP/s of what sets its limit."""
    if row.ratio is None or not pair.cost.get(pair.limit_by):
        return ""
    return formats.rate(pair.cost[pair.limit_by] / pair.arms[row.variant].median_s, pair.limit_by)


def variant(row: Row) -> str:
    """`fused`, or `fused vs vectorized` where it is not against the baseline."""
    versus = "" if row.versus == "baseline" else f" vs {row.versus.removeprefix('optimized/')}"
    return row.variant.removeprefix("optimized/") + versus


def libraries(pair: PairResult, row: Row, spread: bool = False) -> str:
    """Time of each library call / time of the variant, with its grade, or its precision if the library's is another."""
    parts = []
    for label, value in row.vs_library.items():
        kind, _, name = label.partition("/")
        precision = value.get("precision", "")
        said = "yardstick" if kind == "yardstick" else row.precision or grade(value["ratio"])
        if precision:  # the library's, which is then the row's
            said = f"{grade(value['ratio'])}, both {precision}"
            name = "" if name == precision else name
        own = f"({time(pair.arms[label], spread)})" if spread else ""
        parts.append(" ".join(filter(None, (f"{digits(value['ratio'])}x", name, said, own))))
    return ", ".join(parts)


def grade(ratio: float) -> str:
    """Of a library's time / a variant's: A+ is faster by 2 % at least, A as fast, F takes more than twice as long."""
    return next((name for least, name in GRADES if ratio >= least), "F")


def cells(pair: PairResult, row: Row, spread: bool = False) -> list[str]:
    """What HEADINGS name after pair and variant; with spreads, also the time of each library call."""
    figures = (times(pair, row, spread), rate(pair, row), share(pair, row), libraries(pair, row, spread))
    return [row.verdict, ratio(row), *figures]


def remarks(pair: PairResult, row: Row) -> list[str]:
    """What must be said of a row; the notes are the variant's, and said once."""
    return [text for text in (row.reason, *(row.notes if row.versus == "baseline" else [])) if text]


def limit_rows(limits: dict[str, dict[str, Any]]) -> list[list[str]]:
    """What LIMIT_HEADINGS name, of each resource."""
    rows = []
    for key, limit in limits.items():
        peaks = [limit["measured"], limit["datasheet"]]
        shown = [formats.rate(peak, key, formats.four) if peak else "" for peak in peaks]
        rows.append([key, *shown, limit["how"], limit["source"]])
    return rows


def origin(record: Measured) -> str:
    """Where and when a record was made."""
    dates = record.environment.get("dates", [record.environment["date"][:10]])
    return f"{record.environment['device']['name']}, {' and '.join(dates)}"


def line(cells: Iterable[object]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def head(headings: Sequence[str]) -> list[str]:
    return [line(headings), "| --- " * len(headings) + "|"]


def result_line(name: list[str], pair: PairResult, row: Row, is_current: bool, spread: bool = False) -> str:
    """A row of what was recorded; without figures if that is not of the pair as it is now."""
    stale = ["stale: the pair has changed since", *[""] * (len(HEADINGS) - 3)]
    return line([*name, variant(row), *(cells(pair, row, spread) if is_current else stale)])


def source(*files: tuple[Path, Measured]) -> str:
    """Where, when and with what files were recorded, said once of several, with links and the pairs that each has."""
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
