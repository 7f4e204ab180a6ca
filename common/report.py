"""A record in words; and the READMEs' tables, made from recorded/ (python -m common.report)."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from common.calibration.findings import PAIRS, Findings, newest
from common.contract import OneLine
from common.pair import ROOT, discover, source_hash
from common.result import PairResult, Record, Row, recorded, write_text

MARKER = "<!-- results of {} from recorded/: python -m common.report -->"
HARDWARE = "<!-- hardware from recorded/: python -m common.report -->"
CALIBRATION = "<!-- calibration from recorded/: python -m common.report -->"
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
    if arm is None or arm.of_limit is None:
        return ""
    sheet = f" / {arm.of_datasheet:.0%}" if arm.of_datasheet is not None else ""
    return f"{arm.of_limit:.0%}{sheet} {(arm.limit_by or pair.limit_by).removesuffix('_bytes').removesuffix('_flops')}"


def times(pair: PairResult, row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{seconds(pair.arms[row.versus].median_s)} -> {seconds(pair.arms[row.variant].median_s)}"


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


def libraries(row: Row) -> str:
    """Time of each library call / time of the variant, with its grade, or its precision where that is another."""
    named = {label.removeprefix("library").removeprefix("/"): value["ratio"] for label, value in row.vs_library.items()}
    parts = ((f"{digits(found)}x", label, row.precision or grade(found)) for label, found in named.items())
    return ", ".join(" ".join(filter(None, words)) for words in parts)


def grade(ratio: float) -> str:
    """Of a library's time / a variant's: A+ is faster by 2 % at least, A as fast, F takes more than twice as long."""
    return next((name for least, name in GRADES if ratio >= least), "F")


def cells(pair: PairResult, row: Row) -> list[str]:
    """What HEADINGS name after pair and variant."""
    return [row.verdict, ratio(row), times(pair, row), rate(pair, row), share(pair, row), libraries(row)]


def origin(record: Measured) -> str:
    """Where and when a record was made."""
    return f"{record.environment['device']['name']}, {record.environment['date'][:10]}"


def lookup(pair: PairResult, row: Row, record: Record) -> str:
    """What a record says of this row, at the size it was recorded at; `stale` if the pair has changed since."""
    for old in (old for old in record.pairs if (old.chapter, old.name) == (pair.chapter, pair.name)):
        if old.source_hash != pair.source_hash:
            return "stale"
        for found in old.rows:
            if (found.variant, found.versus) == (row.variant, row.versus):
                at_size = f" ({old.size})" if old.size != pair.size else ""
                return f"{found.verdict} {ratio(found)}{at_size}"
    return ""


HEADINGS = (
    "pair", "variant", "verdict", "ratio [95 % interval]", "time", "rate", "of limit / datasheet", "library / variant",
)  # fmt: skip
CHECK_HEADINGS = ("check", "condition", "runs", "found", "accepted", "verdict")


def markdown(chapter: str, records: list[tuple[Path, Record]], hashes: dict[str, str]) -> str:
    """The recorded rows of a chapter, a table a device; a row whose pair has changed since shows no figures."""
    lines = []
    for path, record in records:
        lines += ["", source(path, record), "", *head(HEADINGS)]
        for pair in record.pairs:
            stale = hashes.get(pair.name) != pair.source_hash
            for row in pair.rows:
                gone = ["stale: the pair has changed since", *[""] * (len(HEADINGS) - 3)]
                lines.append(f"| {' | '.join([pair.name, variant(row), *(gone if stale else cells(pair, row))])} |")
    return "\n".join(lines).strip() or NOTHING


def calibrations(found: list[tuple[Path, Findings]], hashes: dict[str, str]) -> str:
    """The checks of each calibration, a table a device; of pairs that have changed since, no figures."""
    lines = []
    for path, findings in found:
        lines += ["", f"{source(path, findings)}, in {findings.environment['took_s'] / 60:.1f} minutes", ""]
        if findings.source_hashes != hashes:
            lines.append("Stale: its pairs have changed since.")
            continue
        lines += head(CHECK_HEADINGS)
        for check in findings.checks:
            texts = [check.check, check.condition, str(check.runs), check.found, check.accepted]
            lines.append(f"| {' | '.join([*texts, 'passed' if check.passed else '**not passed**'])} |")
    return "\n".join(lines).strip() or NOTHING


def source(path: Path, record: Measured) -> str:
    """Where, when and with what a file was recorded, with a link to it."""
    link = f"[{path.parent.name}/{path.name}](/recorded/{path.parent.name}/{path.name})"
    software = ", ".join(f"{name} {version}" for name, version in record.environment["versions"].items())
    return f"Recorded on {origin(record)} ({software}): {link}"


def head(headings: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(headings)} |", "| --- " * len(headings) + "|"]


def filled_in(text: str) -> str:
    """A README's text with the tables between its markers made anew."""

    def table_of(match: re.Match) -> str:
        chapter = match["chapter"]
        hashes = {pair.name: source_hash(pair) for pair in discover(ROOT / chapter)}
        return f"{MARKER.format(chapter)}\n{markdown(chapter, recorded(chapter), hashes)}\n{END}"

    def checks_of(_: re.Match) -> str:
        hashes = {pair.name: source_hash(pair) for pair in discover(PAIRS)}
        return f"{CALIBRATION}\n{calibrations(newest(), hashes)}\n{END}"

    def sheets_of(_: re.Match) -> str:
        from common.hardware import markdown, sheet  # which need this module

        return f"{HARDWARE}\n{markdown.markdown(sheet.all_recorded()) or NOTHING}\n{END}"

    pattern = re.escape(MARKER).replace(re.escape("{}"), r"(?P<chapter>ch\d+)") + r".*?" + re.escape(END)
    text = re.sub(pattern, table_of, text, flags=re.DOTALL)
    text = re.sub(re.escape(HARDWARE) + r".*?" + re.escape(END), sheets_of, text, flags=re.DOTALL)
    return re.sub(re.escape(CALIBRATION) + r".*?" + re.escape(END), checks_of, text, flags=re.DOTALL)


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
