"""Two records, row by row: did something regress?"""

from pathlib import Path

from common.pairs.one_line import printable
from common.record.files import RecordError
from common.record.load import load_record
from common.record.result import FAILED, UNTIMED, Record, Row
from common.record.stats import MARGIN
from common.show.tables import ratio


def compare_files(old: Path, new: Path) -> int:
    """Print what two records say of the same rows; exit status 3 if something regressed. Raises RecordError."""
    records = load_record(old), load_record(new)
    lines, count = regressions(*records)
    interrupted = " (that run was interrupted)" if records[1].environment.get("interrupted") else ""
    if not lines:
        raise RecordError(f"{new}: has no row in common with {old}{interrupted}")
    print("\n".join(map(printable, lines)))
    names = [printable(record.environment["device"]["name"]) for record in records]
    if names[0] != names[1]:
        print(f"different devices, {' and '.join(names)}: no regression can be told")
        return 0
    compared = sum(not line.startswith("missing") for line in lines)
    print(f"{count} of {compared} regressed{interrupted}")
    return 3 if count else 0


def regressions(old: Record, new: Record) -> tuple[list[str], int]:
    """(a line for every row that both records hold, how many of them regressed)."""
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
    """A row that can no longer be believed, or whose interval now lies below the old one by more than the margin."""
    if after.ratio is None:
        return before.ratio is not None or (after.verdict in FAILED and before.verdict in UNTIMED)
    return bool(before.interval and after.interval and after.interval[1] * (1 + MARGIN) < before.interval[0])
