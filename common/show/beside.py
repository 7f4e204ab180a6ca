"""What was recorded on a GPU, beside what a machine without one has to say of the same pairs."""

from common.pairs.sizes import class_of
from common.record.archive import recorded_sizes
from common.record.files import RecordError
from common.record.result import PairResult, Record, Row
from common.show.report import origin, ratio


def on_gpu(record: Record) -> tuple[dict[str, list[Record]], str]:
    """By chapter, what was recorded last on a GPU; none if this is a GPU's. And what kept records from being read."""
    if record.environment["device"]["kind"] == "cuda":
        return {}, ""
    try:
        found = {chapter: recorded_sizes(chapter) for chapter in {pair.chapter for pair in record.pairs}}
    except RecordError as error:  # no reason to lose what was measured
        return {}, str(error)
    return {chapter: [old for _, old in records] for chapter, records in found.items() if records}, ""


def lookup(pair: PairResult, row: Row, records: list[Record]) -> tuple[str, str]:
    """(what, on what and when) was recorded of this row at its size; empty if nothing was.

    Beside what a CPU takes for the default stands the default. `stale` if the pair has changed since.
    """
    for size in dict.fromkeys((pair.size, "default") if class_of(pair.size) == "default" else (pair.size,)):
        for record, old in ((each, old) for each in records for old in each.pairs):
            if (old.chapter, old.name, old.size) != (pair.chapter, pair.name, size):
                continue
            if old.source_hash != pair.source_hash:
                return "stale", origin(record)
            for found in old.rows:
                if (found.variant, found.versus) == (row.variant, row.versus):
                    at_size = f" ({size})" if size != pair.size else ""
                    return f"{found.verdict} {ratio(found)}{at_size}", origin(record)
    return "", ""
