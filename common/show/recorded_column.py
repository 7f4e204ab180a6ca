"""The column "recorded on a GPU" in the table of a machine that has none."""

from collections.abc import Sequence

from common.pairs.pair import Pair
from common.pairs.sizes import class_of
from common.record.archive import current, recorded_sizes
from common.record.files import Problems
from common.record.result import PairResult, Record, Row
from common.show.tables import origin, ratio

Recorded = dict[tuple[str, str, str], tuple[PairResult | None, str]]  # of a result that is stale its origin only


def on_gpu(record: Record, pairs: Sequence[Pair]) -> tuple[Recorded, Problems]:
    """What was recorded last on a GPU, by chapter, pair and size; none if this is a GPU's. And the files that are bad.

    `pairs`: those that were measured.
    """
    found: Recorded = {}
    problems: Problems = {}
    if record.environment["device"]["kind"] == "cuda" or not pairs:
        return found, problems
    is_current = current(pairs)
    for chapter in {pair.chapter for pair in record.pairs}:
        for old in (record for _, record in recorded_sizes(chapter, problems=problems)):
            for each in old.pairs:
                known = (each if is_current(each) else None, origin(old))
                found.setdefault((chapter, each.name, each.size), known)
    return found, problems


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
