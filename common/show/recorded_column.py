"""The column "recorded on a GPU" in the table of a machine that has none."""

from collections.abc import Sequence

from common.pairs.pair import Pair
from common.record.recording import class_of, current, recorded_sizes
from common.record.result import PairResult, Record, RecordError, Row
from common.show.tables import origin, ratio

Recorded = dict[tuple[str, str, str], tuple[PairResult | None, str]]  # of a result that is stale its origin only


def on_gpu(record: Record, pairs: Sequence[Pair]) -> tuple[Recorded, str]:
    """What was recorded last on a GPU, by chapter, pair and size; none if this is a GPU's.

    `pairs`: those that were measured. And what kept records from being read.
    """
    found: Recorded = {}
    if record.environment["device"]["kind"] == "cuda" or not pairs:
        return found, ""
    is_current = current(pairs)
    try:
        for chapter in {pair.chapter for pair in record.pairs}:
            for old in (record for _, record in recorded_sizes(chapter)):
                for each in old.pairs:
                    known = (each if is_current(each) else None, origin(old))
                    found.setdefault((chapter, each.name, each.size), known)
    except RecordError as error:  # no reason to lose what was measured
        return {}, str(error)
    return found, ""


def lookup(pair: PairResult, row: Row, found: Recorded) -> tuple[str, str]:
    """(what, on what and when) was recorded of this row at its size; empty if nothing was.

    Where a CPU takes another size for the default, that of the default. `stale` if the pair has changed since.
    """
    sizes = (pair.size, "default") if class_of(pair.size) == "default" else (pair.size,)
    size = next((size for size in sizes if (pair.chapter, pair.name, size) in found), "")
    old, where = found.get((pair.chapter, pair.name, size), (None, ""))
    if old is None:
        return "stale" if where else "", where
    for each in old.rows:
        if (each.variant, each.versus) == (row.variant, row.versus):
            return f"{each.verdict} {ratio(each)}" + (f" ({size})" if size != pair.size else ""), where
    return "", ""
