"""Memory traffic of all versions of a pair, side by side, and the least time it takes: benchmark.py --count.

    python -m common.cli.count     counts the chapters' pairs into recorded/counts.json, for the pages of results

Each pair is counted at its default size and at `count`. Counts of unchanged pairs are kept: to repeat them, remove the
file.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence

from common import program
from common.cli import counts
from common.cli.arguments import COUNTED_FOR
from common.cli.counts import CountedPair
from common.cli.prediction_rates import rates_for
from common.isolation import interrupt
from common.pairs.pair import Pair, chapters, discover
from common.pairs.wide_tables import print_table
from common.record import files
from common.show import console
from common.traffic import traffic_tables
from common.traffic.least_time import Rates, predict_time
from common.traffic.versions import count_pair
from common.xray.occupancy import MACHINES, Machine

Wanted = Sequence[tuple[Pair, str]]  # pairs and sizes


def count_pairs(args: Namespace, pairs: list[Pair]) -> int:
    """Count and print. Exit status 1 if a version fails by its own fault or a file cannot be written."""
    machine, unwritten = MACHINES[args.arch[0]], list[str]()
    if lacking := [pair.name for pair in pairs if not sizes_to_count(pair, args.size)]:
        print(f"left out, because they have no size {args.size}: {', '.join(lacking)}", file=sys.stderr)
    with interrupt.hold_signals():
        wanted = [(pair, size) for pair in pairs for size in sizes_to_count(pair, args.size)]
        found = list(_counted(wanted, machine))
        rates = rates_for(machine)
        with files.note_errors(unwritten):
            if args.json:
                counts.save(counts.made(found, machine), args.json)
            if args.markdown:
                pages = [traffic_tables.markdown(*_shown(each, rates)) for each in found]
                files.write_text(args.markdown, "\n".join(pages))
        _print(found, rates)
    for problem in unwritten:
        print(f"benchmark.py: {problem}", file=sys.stderr)
    return 1 if unwritten or any(version.failed for each in found for version in each.versions) else 0


def sizes_to_count(pair: Pair, wanted: str) -> list[str]:
    """The pair's sizes by name or class, check sizes too. `count` stands for the default in a pair without `count`."""
    names = set(wanted.split(","))
    if "count" in names and "count" not in pair.sizes:
        names.add("default")
    return [size for size in pair.sizes if names & {"all", size, size.split("/")[0]}]


def _counted(wanted: Wanted, machine: Machine) -> Iterator[CountedPair]:
    """Counts, one pair and size after another, with progress on stderr."""
    with console.progress(len(wanted)) as (tell, _):
        for number, (pair, size) in enumerate(wanted):
            named = f"{pair.name} {size}"

            def draw(label: str, number: int = number, named: str = named) -> None:
                tell(f"{named}: {label}", number, len(wanted), f"[{number + 1}] {named}")

            yield CountedPair.of(pair, size, count_pair(pair, size, machine, draw, models_l2=True))


def _shown(found: CountedPair, rates: Rates | None) -> tuple[str, traffic_tables.Table, list[str]]:
    """Title, table and remarks."""
    times = {
        each.label: predict_time(each.traffic, rates, found.clock == "wall")
        for each in found.versions
        if each.traffic and rates
    }
    table = traffic_tables.rows(found.versions, times, rates.name if rates else "")
    return traffic_tables.title(found.name, found.size, found.versions), table, traffic_tables.footnotes(found.versions)


def _print(found: Sequence[CountedPair], rates: Rates | None) -> None:
    out = console.make_console()
    for title, (headings, rows), words in (_shown(each, rates) for each in found):
        if rows:
            print_table(title, headings, rows, out, whole=True)
        for text in words if rows else [title, *words]:
            console.say(text, out)
    if rates and any(version.traffic for each in found for version in each.versions):
        console.say(f"{traffic_tables.PREDICTED}: {rates.source}", out)


def record(argv: list[str] | None) -> int:
    """Count the chapters' pairs into recorded/counts.json. Raises UserError."""
    program.Parser("python -m common.cli.count", description=str(__doc__)).parse_args(argv)
    machine, known = MACHINES[COUNTED_FOR], counts.recorded()
    pairs = [pair for folder in chapters().values() for pair in discover(folder)]
    sizes = [(pair, size) for pair in pairs for size in ("default", "count") if size in pair.sizes]
    kept = {(each.chapter, each.name, each.size): each for each in known}

    def has(pair: Pair, size: str) -> bool:
        old = kept.get((pair.chapter, pair.name, size))
        return old is not None and old.is_of(pair) and not any(version.failed for version in old.versions)

    with interrupt.hold_signals():
        for new in _counted([item for item in sizes if not has(*item)], machine):
            kept[new.chapter, new.name, new.size] = new
    keys = [(pair.chapter, pair.name, size) for pair, size in sizes]
    counts.save(counts.made([kept[key] for key in keys], machine), files.RECORDED / counts.FILE)
    return 0


if __name__ == "__main__":
    program.finish(lambda: program.status_of("python -m common.cli.count", lambda: record(None)))
