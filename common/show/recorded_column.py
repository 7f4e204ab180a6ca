"""The column "recorded on a GPU" in the table of a machine without a GPU."""

from collections.abc import Sequence

from common.pairs.pair import Pair
from common.pairs.sizes import class_of
from common.record.archive import current, recorded_sizes
from common.record.files import Problems
from common.record.result import PairResult, Record, Row
from common.show.tables import origin, ratio

Recorded = dict[tuple[str, str, str], tuple[PairResult | None, str]]  # None in place of a stale result


def on_gpu(record: Record, pairs: Sequence[Pair]) -> tuple[Recorded, Problems]:
    """(The newest result recorded on a GPU, by chapter, pair and size; the bad files.) Both are empty on a GPU.

    `pairs`: the measured pairs.
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
    """(What was recorded of this row at its size; on which device, and when.) Both are empty if nothing was recorded.

    If a CPU uses another size in place of the default, the record is of the default size. `stale`: the pair has
    changed.
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
