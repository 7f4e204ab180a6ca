"""Compare two records row by row: did a result regress?"""

from pathlib import Path

from common.pairs.one_line import printable
from common.record.files import RecordError
from common.record.load import load_record
from common.record.result import FAILED, UNTIMED, Record, Row
from common.record.stats import MARGIN
from common.show.tables import ratio


def compare_files(old: Path, new: Path) -> int:
    """Print the rows of two records side by side. Exit status 3 if a row regressed. Raises RecordError."""
    records = load_record(old), load_record(new)
    lines, count = regressions(*records)
    interrupted = " (that run was interrupted)" if records[1].environment.get("interrupted") else ""
    if not lines:
        raise RecordError(f"{new}: has no row in common with {old}{interrupted}")
    print("\n".join(map(printable, lines)))
    names = [printable(record.environment["device"]["name"]) for record in records]
    if names[0] != names[1]:
        print(f"different devices, {' and '.join(names)}: regressions cannot be determined")
        return 0
    compared = sum(not line.startswith("missing") for line in lines)
    print(f"{count} of {compared} regressed{interrupted}")
    return 3 if count else 0


def regressions(old: Record, new: Record) -> tuple[list[str], int]:
    """(A line for every row that both records contain; how many of them regressed.)"""
    before, after = _rows(old), _rows(new)
    worse = {key: _is_worse(before[key], after[key]) for key in before if key in after}
    lines = []
    for key, is_worse in worse.items():
        shown = " -> ".join(f"{row.verdict} {ratio(row)}".strip() for row in (before[key], after[key]))
        lines.append(f"{'REGRESSED' if is_worse else 'ok':9}  {' '.join(key)}: {shown}")
    lines += [f"{'missing':9}  {' '.join(key)}" for key in before if key not in after] if lines else []
    return lines, sum(worse.values())


def _rows(record: Record) -> dict[tuple[str, ...], Row]:
    return {
        (pair.chapter, pair.name, pair.size, row.variant, "vs", row.versus): row
        for pair in record.pairs
        for row in pair.rows
    }


def _is_worse(before: Row, after: Row) -> bool:
    """Whether a row lost its ratio, or its interval now lies below the old one by more than the margin."""
    if after.ratio is None:
        return before.ratio is not None or (after.verdict in FAILED and before.verdict in UNTIMED)
    return bool(before.interval and after.interval and after.interval[1] * (1 + MARGIN) < before.interval[0])
