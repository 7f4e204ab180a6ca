"""Compare two records row by row: did a result regress?"""

from pathlib import Path

from common.pairs.pair import short
from common.record.files import RecordError
from common.record.load import load_record
from common.record.outcome import FAILED, UNTIMED
from common.record.result import PairResult, Record, Row
from common.show.console import make_console, print_entries, say
from common.show.layout import Entry
from common.show.tables import interval, named, speedup, word
from common.stats import MARGIN

HEADINGS = ("compared", "verdict", "old", "new", "new interval", "old interval")  # the last goes first


def compare_files(old: Path, new: Path) -> int:
    """Print the rows of two records side by side. Exit status 3 if a row regressed. Raises RecordError."""
    records = load_record(old), load_record(new)
    entries, worse = regressions(*records)
    interrupted = " (that run was interrupted)" if records[1].environment.get("interrupted") else ""
    if not worse:
        raise RecordError(f"{new}: has no row in common with {old}{interrupted}")
    console = make_console()
    print_entries(HEADINGS, entries, console)
    names = [record.environment["device"]["name"] for record in records]
    if names[0] != names[1]:
        say(f"different devices, {' and '.join(names)}: regressions cannot be determined", console)
        return 0
    say(f"{sum(worse)} of {len(worse)} regressed{interrupted}", console)
    return 3 if any(worse) else 0


def regressions(old: Record, new: Record) -> tuple[list[Entry], list[bool]]:
    """(The table of all rows of the old record, by pair; of each that the new one has, too, whether it regressed.)"""
    after = _rows(new)
    entries, worse = list[Entry](), list[bool]()
    for pair in old.pairs:
        entries.append(Entry(named(pair), is_title=True))
        for row in pair.rows:
            versus = () if row.versus == "baseline" else (f"vs {short(row.versus)}", short(row.variant))
            name, of = versus or (short(row.variant), "")
            found = after.get(_key(pair, row))
            if found:
                worse.append(_is_worse(row, found))
            state = "missing" if found is None else "REGRESSED" if worse[-1] else "ok"
            cells = {
                "compared": state,
                "verdict": word(row.verdict),
                "old": speedup(row),
                "old interval": interval(row),
            }
            if found:
                cells |= {"new": speedup(found), "new interval": interval(found)}
                cells["verdict"] += f" -> {word(found.verdict)}" if found.verdict != row.verdict else ""
            entries.append(Entry(name, cells, of, styles={"": "bold red"} if state == "REGRESSED" else {}))
    return entries, worse


def _key(pair: PairResult, row: Row) -> tuple[str, ...]:
    return pair.chapter, pair.name, pair.size, row.variant, row.versus


def _rows(record: Record) -> dict[tuple[str, ...], Row]:
    return {_key(pair, row): row for pair in record.pairs for row in pair.rows}


def _is_worse(before: Row, after: Row) -> bool:
    """Whether a row lost its ratio, or its interval now lies below the old one by more than the margin."""
    if after.ratio is None:
        return before.ratio is not None or (after.verdict in FAILED and before.verdict in UNTIMED)
    return bool(before.interval and after.interval and after.interval[1] * (1 + MARGIN) < before.interval[0])
