"""Measure at odd sizes that a seed draws, against libraries.

Three sizes of every pair of chapters 1, 3, 4 and 5 that has a library, drawn by the name of a seed. Arguments of
`inputs` that are numbers of elements are log-uniform between the extremes of the pair's own sizes (down to half the
smallest), and odd, so that rows begin at no multiple of 16 bytes. The third size is a batch of one, where there are two
such arguments. All others (types, operations, dimensions) are values of the pair's own sizes. Who draws by a new name
after the last change of a version sees how it does at sizes that nobody chose.

Exit status: 1 where the best version is less than 0.95 times as fast as the fastest library, or a version is wrong.
"""

from argparse import Namespace
from dataclasses import replace
from fnmatch import fnmatchcase
from math import exp, log, prod
from pathlib import Path
from random import Random
from typing import Any

from common.cli.arguments import chapter_folder
from common.engine import runner
from common.isolation import interrupt
from common.pairs.pair import Pair, discover
from common.program import UsageError
from common.record.files import check_writable
from common.record.result import Record
from tools.carry_records import arguments_of

Size = dict[str, Any]  # the arguments of `inputs`

CHAPTERS = (1, 3, 4, 5)  # chapter 2 shows mechanisms, chapter 6 needs several GPUs
CLASS = "anywhere"
DRAWS, TARGET = 3, 0.95  # sizes of a pair; the library's time / the version's
FEWEST = 16  # an argument that stays below is no number of elements: dimensions, heads
HEAD = "d"  # neither is the dimension of a head: no library takes an odd one


def draw_sizes(pair: Pair, seed: str) -> dict[str, Size]:
    """Name -> arguments of the sizes that a seed draws for a pair; the same on every machine."""
    random = Random(f"{seed} {pair.chapter} {pair.name}")
    known_sizes = [arguments_of(pair, pair.sizes[size]) for size in pair.timed_sizes if size != "cpu"]
    # in the order of `inputs`: a batch comes first
    known_sizes = [dict(reversed(size.items())) for size in known_sizes]
    new_sizes = [_draw_size(known_sizes, random, is_single=number == DRAWS - 1) for number in range(DRAWS)]
    return {"/".join([CLASS, str(number), *map(str, size.values())]): size for number, size in enumerate(new_sizes)}


def _draw_size(known_sizes: list[Size], random: Random, is_single: bool) -> Size:
    values = {name: [size[name] for size in known_sizes] for name in known_sizes[0]}
    numbers = {name: choices for name, choices in values.items() if type(choices[0]) is int and name != HEAD}
    counts = [name for name, choices in numbers.items() if max(choices) >= FEWEST]
    elements = [prod(size[name] for name in counts) for size in known_sizes]
    is_single = is_single and len(counts) > 1
    while True:
        size = {name: random.choice(sorted(set(choices), key=str)) for name, choices in values.items()}
        for name in counts:
            least, most = max(min(values[name]) // 2, 1), max(values[name])
            size[name] = int(exp(random.uniform(log(least), log(most)))) | 1
        if is_single:
            size[counts[0]] = 1
        if is_single or min(elements) / 2 <= prod(size[name] for name in counts) <= max(elements):
            return size


def has_library(pair: Pair) -> bool:
    return any(name.split("_")[0] == "library" for version in pair.versions for name in version.functions)


def slower_sizes(record: Record) -> list[str]:
    """A line for each size whose best version is behind the fastest library; none where nothing was timed."""
    from common.show.summary import fastest_library

    lines = []
    for pair in record.pairs:
        rows = [row for row in pair.rows if row.versus == "baseline" and not row.precision]
        ratios = [(fastest[0], row.variant) for row in rows if (fastest := fastest_library(pair, row))]
        ratio, variant = max(ratios, default=(TARGET, ""))
        if ratio < TARGET:
            lines.append(f"behind: {pair.name} {pair.size}, {variant}: {ratio:.3f}x the speed of the library")
    return lines


def run(args: Namespace) -> int:
    """Draw, measure, print. Raises UserError."""
    numbers = [args.chapter] if args.chapter else CHAPTERS
    pairs = [pair for number in numbers for pair in discover(chapter_folder(number))]
    pairs = [pair for pair in pairs if fnmatchcase(pair.name, args.only) and has_library(pair)]
    if not pairs:
        raise UsageError(f"no pair with a library matches {args.only!r}")
    pairs = [replace(pair, sizes={**pair.sizes, **draw_sizes(pair, args.seed)}) for pair in pairs]
    if args.list:
        print("\n".join(f"{pair.name} {size}" for pair in pairs for size in pair.sizes if size.startswith(CLASS)))
        return 0
    if args.json:
        check_writable(args.json)
    return measure(pairs, args.device, args.json)


def measure(pairs: list[Pair], device: str | None, path: Path | None) -> int:
    from common.record.record_file import save_record
    from common.show import console

    with interrupt.hold_signals():
        with console.measurement_progress(len(pairs)) as (say, warn):
            record = runner.run_pairs(pairs, CLASS, device, on_progress=say, on_neighbours=warn)
        if path and record.pairs:
            save_record(record, path)
        console.print_record(record, console.make_console(), pairs)
        slower = slower_sizes(record)
        print("\n".join(slower))
    return 1 if slower or runner.has_failed(record) else 0
