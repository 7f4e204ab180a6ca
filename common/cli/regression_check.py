"""Compare two records row by row: did a result regress?"""

from pathlib import Path

from common.pairs.pair import short
from common.record.files import RecordError
from common.record.outcome import FAILED
from common.record.record_file import load_record
from common.record.result import PairResult, Record, Row
from common.show.console import make_console, print_entries, print_wrapped
from common.show.layout import Entry
from common.show.tables import interval, name_with_size, speedup, word
from common.stats import MARGIN

HEADINGS = ("compared", "old", "new", "verdict", "new interval", "old interval")  # the last goes first
LEAST = 3  # of them never go
OK, REGRESSED, MISSING, NOT_TIMED = "ok", "REGRESSED", "missing", "not timed"
WORDS = {MISSING: "the new record lacks it", NOT_TIMED: "it has no speedup in one of the records, or in both"}


def compare_files(old: Path, new: Path) -> int:
    """Print the rows of two records side by side. Exit status 3 if a row regressed. Raises RecordError."""
    records = load_record(old), load_record(new)
    names = [record.environment["device"]["name"] for record in records]
    entries = regressions(*records, names[0] == names[1])
    states = [entry.cells["compared"] for entry in entries if not entry.is_title]
    interrupted = " (that run was interrupted)" if records[1].environment.get("interrupted") else ""
    if {*states} <= {MISSING}:
        raise RecordError(f"{new}: has no row in common with {old}{interrupted}")
    console = make_console()
    print_entries(HEADINGS, entries, console, LEAST)
    for state in [state for state in WORDS if state in states]:
        print_wrapped(f"{state}: {WORDS[state]}", console)
    worse, comparable = states.count(REGRESSED), states.count(OK) + states.count(REGRESSED)
    reason = "nothing was timed in both" if names[0] == names[1] else f"different devices, {' and '.join(names)}"
    text = f"{worse} of {comparable} regressed" if comparable else f"{reason}: regressions cannot be determined"
    print_wrapped(text + interrupted, console)
    return 3 if worse else 0


def regressions(old: Record, new: Record, is_one_device: bool = True) -> list[Entry]:
    """The table of all rows of the old record, by pair. `compared` is empty where devices differ."""
    after = _rows(new)
    entries = list[Entry]()
    for pair in old.pairs:
        entries.append(Entry(name_with_size(pair), is_title=True))
        for row in pair.rows:
            versus = () if row.versus == "baseline" else (f"vs {short(row.versus)}", short(row.variant))
            name, parent = versus or (short(row.variant), "")
            new_row = after.get(_key(pair, row))
            state = MISSING if new_row is None else _state(row, new_row) if is_one_device else ""
            change = f" -> {word(new_row.verdict)}" if new_row and new_row.verdict != row.verdict else ""
            cells = {"compared": state, "verdict": word(row.verdict) + change}
            cells |= {"old": speedup(row), "old interval": interval(row)}
            cells |= {"new": speedup(new_row), "new interval": interval(new_row)} if new_row else {}
            entries.append(Entry(name, cells, parent, styles={"": "bold red"} if state == REGRESSED else {}))
    return entries


def _key(pair: PairResult, row: Row) -> tuple[str, ...]:
    return pair.chapter, pair.name, pair.size, row.variant, row.versus


def _rows(record: Record) -> dict[tuple[str, ...], Row]:
    return {_key(pair, row): row for pair in record.pairs for row in pair.rows}


def _state(before: Row, after: Row) -> str:
    """Whether a row that was right fails now, or its interval lies below the old one by more than the margin."""
    if after.verdict in FAILED and before.verdict not in (*FAILED, "skipped"):
        return REGRESSED
    if before.ratio is None or after.ratio is None:
        return NOT_TIMED
    is_apart = before.interval and after.interval and after.interval[1] * (1 + MARGIN) < before.interval[0]
    return REGRESSED if is_apart else OK
