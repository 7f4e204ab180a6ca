"""Counts as a file: what --json writes, and recorded/counts.json, the source of pages of results.

A count names the pair's code by its hash, and the arguments of its size: it is stale once these change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.machine.device import versions
from common.pairs.pair import Pair
from common.pairs.source import source_hash
from common.record import files
from common.record.store import as_json
from common.traffic.versions import VersionTraffic
from common.xray.occupancy import Machine

SCHEMA = 2
FILE = "counts.json"


@dataclass(frozen=True)
class CountedPair:
    """The counts of a pair's versions at one size. `sizes`: the arguments of `inputs`; `clock`: device or wall."""

    chapter: str
    name: str
    size: str
    sizes: dict[str, Any]
    source_hash: str
    clock: str
    versions: list[VersionTraffic]

    @classmethod
    def from_pair(cls, pair: Pair, size: str, versions: list[VersionTraffic]) -> "CountedPair":
        sizes, clock = as_json(pair.sizes[size]), pair.baseline.constants.get("CLOCK", "device")
        return cls(pair.chapter, pair.name, size, sizes, source_hash(pair), clock, versions)

    def is_current(self, pair: Pair | None) -> bool:
        """Whether the pair is unchanged since it was counted."""
        if pair is None or self.size not in pair.sizes:
            return False
        return (source_hash(pair), as_json(pair.sizes[self.size])) == (self.source_hash, self.sizes)


@dataclass(frozen=True)
class Counts:
    """All counts of a file, made for a GPU of `environment["architecture"]`."""

    schema: int
    environment: dict[str, Any]  # versions, date, architecture
    pairs: list[CountedPair]


def new_counts(pairs: Sequence[CountedPair], machine: Machine) -> Counts:
    """Counts with today's versions and date."""
    environment = {"versions": versions(), "date": files.utc_now(), "architecture": machine.architecture}
    return Counts(SCHEMA, environment, list(pairs))


def save(counts: Counts, path: Path) -> None:
    """Write atomically into a folder that exists. Raises RecordError."""
    files.write_json(path, counts)


FORMAT = files.Format("counts", SCHEMA, Counts)


def load_counts(problems: files.Problems | None = None) -> list[CountedPair]:
    """The counts of recorded/counts.json; empty without the file. A bad file is noted in `problems`, or raises."""
    path = files.RECORDED / FILE
    if not path.exists():
        return []
    try:
        counts: Counts = FORMAT.load(path)
    except files.RecordError as error:
        if problems is None:
            raise
        problems[path] = str(error)
        return []
    return counts.pairs
