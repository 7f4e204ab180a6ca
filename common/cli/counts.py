"""Counts as a file: what --json writes, and recorded/counts.json, which the pages of results are made from.

A count is of a pair as it was: by the hash of its code and the arguments of its size.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.machine.device import versions
from common.pairs.pair import Pair
from common.pairs.source import source_hash
from common.record import files
from common.record.archive import as_json
from common.traffic.data import Kernel, Traffic
from common.traffic.versions import Counted
from common.xray.occupancy import Machine

SCHEMA = 1
FILE = "counts.json"


@dataclass(frozen=True)
class CountedPair:
    """The versions of a pair at one size; `sizes`: the arguments of `inputs`; `clock`: device or wall."""

    chapter: str
    name: str
    size: str
    sizes: dict[str, Any]
    source_hash: str
    clock: str
    versions: list[Counted]

    @classmethod
    def of(cls, pair: Pair, size: str, found: list[Counted]) -> "CountedPair":
        sizes, clock = as_json(pair.sizes[size]), pair.baseline.constants.get("CLOCK", "device")
        return cls(pair.chapter, pair.name, size, sizes, source_hash(pair), clock, found)

    def is_of(self, pair: Pair | None) -> bool:
        """Whether the pair is still as it was counted."""
        return bool(
            pair
            and source_hash(pair) == self.source_hash
            and self.size in pair.sizes
            and as_json(pair.sizes[self.size]) == self.sizes
        )


@dataclass(frozen=True)
class Counts:
    """What was counted, as on a GPU of `environment["architecture"]`."""

    schema: int
    environment: dict[str, Any]  # versions, date, architecture
    pairs: list[CountedPair]


def made(pairs: Sequence[CountedPair], machine: Machine) -> Counts:
    """As counted now."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    environment = {"versions": versions(), "date": date, "architecture": machine.architecture}
    return Counts(SCHEMA, environment, list(pairs))


def save(counts: Counts, path: Path) -> None:
    """Atomically, into a folder that exists. Raises RecordError."""
    files.write_text(path, json.dumps(asdict(counts), indent=1, allow_nan=False) + "\n")


def _read(data: dict[str, Any]) -> Counts:
    pairs = [
        CountedPair(**{**pair, "versions": [_counted(version) for version in pair["versions"]]})
        for pair in data["pairs"]
    ]
    return Counts(**{**data, "pairs": pairs})


def _counted(version: dict[str, Any]) -> Counted:
    traffic = version["traffic"]
    if traffic is not None:
        traffic = Traffic(**{**traffic, "kernels": tuple(Kernel(**kernel) for kernel in traffic["kernels"])})
    return Counted(**{**version, "traffic": traffic})


FORMAT = files.Format("counts", SCHEMA, _read)


def recorded(problems: files.Problems | None = None) -> list[CountedPair]:
    """What recorded/counts.json has; nothing if there is none. A bad file is noted in `problems`, else raises."""
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
