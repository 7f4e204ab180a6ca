"""Count the memory traffic of every chapter's pairs.

Each pair is counted at its default size and at `count`, into recorded/counts.json. Counts of unchanged pairs are kept:
to repeat them, remove the file. `make readme` then writes recorded/<device>/counts.md.
"""

from argparse import Namespace

from common.cli import counts
from common.cli.arguments import COUNTED_FOR
from common.cli.counts import count_all
from common.isolation import interrupt
from common.pairs.pair import Pair, chapters, discover
from common.record import files
from common.xray.occupancy import MACHINES


def run(args: Namespace) -> int:
    """Raises UserError, KeyboardInterrupt."""
    machine, recorded = MACHINES[COUNTED_FOR], counts.load_counts()
    pairs = [pair for folder in chapters().values() for pair in discover(folder)]
    sizes = [(pair, size) for pair in pairs for size in ("default", "count") if size in pair.sizes]
    by_key = {(pair.chapter, pair.name, pair.size): pair for pair in recorded}

    def is_counted(pair: Pair, size: str) -> bool:
        old = by_key.get((pair.chapter, pair.name, size))
        return old is not None and old.is_current(pair) and not any(version.failed for version in old.versions)

    with interrupt.hold_signals():
        for new in count_all([item for item in sizes if not is_counted(*item)], machine):
            by_key[new.chapter, new.name, new.size] = new
    keys = [(pair.chapter, pair.name, size) for pair, size in sizes]
    counts.save(counts.new_counts([by_key[key] for key in keys], machine), files.RECORDED / counts.FILE)
    return 0
