"""A record in words; and the READMEs' tables, made from recorded/ (python -m common.show.report)."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from common.calibration.checks import newest
from common.calibration.findings import PAIRS
from common.pairs.contract import OneLine
from common.pairs.pair import ROOT, discover
from common.pairs.source import source_hash
from common.record import stats
from common.record.archive import recorded
from common.record.files import write_text
from common.record.result import Arm, PairResult, Row

MARKER = "<!-- results of {} from recorded/: python -m common.show.report -->"
SIZES_MARKER = "<!-- results of {} at all sizes from recorded/: python -m common.show.report -->"
HARDWARE = "<!-- hardware from recorded/: python -m common.show.report -->"
CALIBRATION = "<!-- calibration from recorded/: python -m common.show.report -->"
END = "<!-- end of results -->"
NOTHING = "Nothing is recorded yet."
GRADES = ((1.02, "A+"), (0.98, "A"), (0.9, "B"), (0.75, "C"), (0.5, "D"))


class Measured(Protocol):
    """A record, findings, a machine's sheet: what says where, when and with what it was made."""

    @property
    def environment(self) -> dict[str, Any]: ...


def digits(value: float) -> str:
    """Three significant digits, never a power of ten."""
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:.0f}"


def seconds(value: float) -> str:
    unit, scale = next(
        ((unit, scale) for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if value >= 0.9995 * scale),
        ("ns", 1e-9),
    )
    return f"{digits(value / scale)} {unit}"


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
    per_s = pair.cost[pair.limit_by] / pair.arms[row.variant].median_s
    return f"{digits(per_s / 1e9)} GB/s" if pair.limit_by.endswith("_bytes") else f"{digits(per_s / 1e12)} TFLOP/s"


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


def origin(record: Measured) -> str:
    """Where and when a record was made."""
    dates = record.environment.get("dates", [record.environment["date"][:10]])
    return f"{record.environment['device']['name']}, {' and '.join(dates)}"


HEADINGS = (
    "pair", "variant", "verdict", "ratio [95 % interval]", "time", "rate", "of limit / datasheet", "library / variant",
)  # fmt: skip


def line(name: list[str], pair: PairResult, row: Row, hashes: dict[str, str], spread: bool = False) -> str:
    """A row of a table of what was recorded."""
    stale = ["stale: the pair has changed since", *[""] * (len(HEADINGS) - 3)]
    is_stale = hashes.get(pair.name) != pair.source_hash
    return f"| {' | '.join([*name, variant(row), *(stale if is_stale else cells(pair, row, spread))])} |"


def source(path: Path, record: Measured) -> str:
    """Where, when and with what a file was recorded, with a link to it."""
    return f"{made(record)}: {link(path)}"


def made(record: Measured) -> str:
    software = ", ".join(f"{name} {version}" for name, version in record.environment["versions"].items())
    return f"Recorded on {origin(record)} ({software})"


def link(path: Path) -> str:
    return f"[{path.parent.name}/{path.name}](/recorded/{path.parent.name}/{path.name})"


def head(headings: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(headings)} |", "| --- " * len(headings) + "|"]


def filled_in(text: str) -> str:
    """A README's text with the tables between its markers made anew."""
    from common.calibration import markdown as calibrations
    from common.hardware import markdown as sheets
    from common.hardware import sheet
    from common.show import summary  # which needs this module, as do the calibrations and the sheets

    makers: dict[str, Callable[..., str]] = {
        MARKER: lambda chapter: summary.by_device(recorded(chapter), _hashes(ROOT / chapter)),
        SIZES_MARKER: lambda chapter: summary.by_class(chapter, discover(ROOT / chapter)),
        HARDWARE: lambda: sheets.markdown(sheet.FORMAT.recorded(sheet.FILE)),
        CALIBRATION: lambda: calibrations.markdown(newest(), _hashes(PAIRS)),
    }
    for marker, make in makers.items():
        pattern = re.escape(marker).replace(re.escape("{}"), r"(ch\d+)")
        for found in re.finditer(f"({pattern})\n.*?{re.escape(END)}", text, re.DOTALL):
            text = text.replace(found[0], f"{found[1]}\n{make(*found.groups()[1:]) or NOTHING}\n{END}")
    return text


def _hashes(folder: Path) -> dict[str, str]:
    return {pair.name: source_hash(pair) for pair in discover(folder)}


def readmes() -> list[Path]:
    return [ROOT / "README.md", ROOT / "common/README.md", *sorted(ROOT.glob("ch[0-9]*/README.md"))]


def main() -> int:
    try:
        for path in readmes():
            write_text(path, filled_in(path.read_text(encoding="utf-8")))
    except OneLine as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
