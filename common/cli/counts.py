"""Memory traffic of all versions of a pair, side by side, and the least time it takes: benchmark.py --count.

Counts as a file are what --json writes, and recorded/counts.json, the source of pages of results. A count names the
pair's code by its hash, and the arguments of its size: it is stale once these change.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.cli.prediction_rates import rates_for
from common.isolation import interrupt
from common.machine.device import versions
from common.pairs.pair import Pair
from common.pairs.source import source_hash
from common.pairs.wide_tables import print_table
from common.record import files
from common.record.store import as_json
from common.show import console
from common.traffic import traffic_tables
from common.traffic.least_time import Rates, predict_time
from common.traffic.versions import VersionTraffic, count_pair
from common.xray.occupancy import MACHINES, Machine

PairSizes = Sequence[tuple[Pair, str]]  # pairs and sizes
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


def count_pairs(args: Namespace, pairs: list[Pair]) -> int:
    """Count and print. Exit status 1 if a version fails by its own fault or a file cannot be written."""
    machine, unwritten = MACHINES[args.arch[0]], list[str]()
    if missing := [pair.name for pair in pairs if not sizes_to_count(pair, args.size)]:
        print(f"left out, because they have no size {args.size}: {', '.join(missing)}", file=sys.stderr)
    with interrupt.hold_signals():
        requested = [(pair, size) for pair in pairs for size in sizes_to_count(pair, args.size)]
        counted_pairs = list(count_all(requested, machine))
        rates = rates_for(machine)
        with files.note_errors(unwritten):
            if args.json:
                save(new_counts(counted_pairs, machine), args.json)
            if args.markdown:
                pages = [traffic_tables.markdown(*_table_parts(pair, rates)) for pair in counted_pairs]
                files.write_text(args.markdown, "\n".join(pages))
        _print_tables(counted_pairs, rates)
    for problem in unwritten:
        print(f"benchmark.py: {problem}", file=sys.stderr)
    return 1 if unwritten or any(version.failed for pair in counted_pairs for version in pair.versions) else 0


def sizes_to_count(pair: Pair, requested: str) -> list[str]:
    """The pair's sizes by name or class, check sizes too. `count` stands for the default in a pair without `count`."""
    names = set(requested.split(","))
    if "count" in names and "count" not in pair.sizes:
        names.add("default")
    return [size for size in pair.sizes if names & {"all", size, size.split("/")[0]}]


def count_all(requested: PairSizes, machine: Machine) -> Iterator[CountedPair]:
    """Count one pair and size after another, with progress on stderr."""
    with console.progress(len(requested)) as (tell, _):
        for number, (pair, size) in enumerate(requested):
            name = f"{pair.name} {size}"

            def show_version(label: str, number: int = number, name: str = name) -> None:
                tell(f"{name}: {label}", number, len(requested), f"[{number + 1}] {name}")

            yield CountedPair.from_pair(pair, size, count_pair(pair, size, machine, show_version, models_l2=True))


def _table_parts(pair: CountedPair, rates: Rates | None) -> tuple[str, traffic_tables.Table, list[str]]:
    """Title, table and remarks."""
    times = {
        version.label: predict_time(version.traffic, rates, pair.clock == "wall")
        for version in pair.versions
        if version.traffic and rates
    }
    table = traffic_tables.rows(pair.versions, times, rates.name if rates else "")
    return traffic_tables.title(pair.name, pair.size, pair.versions), table, traffic_tables.footnotes(pair.versions)


def _print_tables(pairs: Sequence[CountedPair], rates: Rates | None) -> None:
    out = console.make_console()
    for title, (headings, rows), words in (_table_parts(pair, rates) for pair in pairs):
        if rows:
            print_table(title, headings, rows, out, whole_cells=True)
        for text in words if rows else [title, *words]:
            console.print_wrapped(text, out)
    if rates and any(version.traffic for pair in pairs for version in pair.versions):
        console.print_wrapped(f"{traffic_tables.PREDICTED}: {rates.source}", out)
