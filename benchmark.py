#!/usr/bin/env python3
"""Measure the course's pairs on this machine: the gain of each optimization, and a proof that its versions agree.

Exit status: 0 success (`slower` is a result); 1 a pair is invalid or died, a kernel does not compile, a version fails
while counted, or a result cannot be written; 2 wrong usage, a file that breaks the contract, or a place that cannot be
written to; 3 --compare found a regression; 130 interrupted.
"""

import signal

if __name__ == "__main__":  # imports take a second or more; Ctrl-C during them ends the program without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from argparse import Namespace

from common import program
from common.cli.request import check_request, listing, parse, select
from common.engine import runner
from common.isolation import interrupt
from common.pairs.one_line import printable
from common.pairs.pair import ROOT, Pair
from common.pairs.sizes import lacking, sizes_of
from common.record.files import noting
from common.record.result import Record

# Slow imports (numpy, rich, matplotlib) are in functions: --help and --list must answer at once.


def measure(args: Namespace, pairs: list[Pair]) -> int:
    """Measure, print, write files. Returns the exit status."""
    from common.record import load
    from common.show import console

    unwritten: list[str] = []

    def keep(record: Record) -> None:
        unwritten.clear()
        if args.json and record.pairs:  # a run that is stopped before its first result replaces no file
            with noting(unwritten):
                load.save_record(record, args.json)

    choices = (args.size, args.device, args.fast, args.check)
    with interrupt.held_back():
        with console.measuring(len(pairs)) as (on_progress, on_neighbours):
            record = runner.run_pairs(
                pairs, *choices, on_progress=on_progress, on_record=keep, on_neighbours=on_neighbours
            )
        keep(record)
        # before anything is printed: a closed pipe or a full disk ends the printing
        written = write(args, pairs, record, unwritten)
        console.print_record(record, console.make_console(), pairs)
        if args.verbose:
            console.print_spent(record, console.make_console())
        for line in written:
            print(printable(line))
        if interrupted := record.environment["interrupted"]:
            print(f"interrupted after {len(record.pairs)} of {len(pairs)} pairs", file=sys.stderr)
        for problem in unwritten:
            print(f"benchmark.py: {problem}", file=sys.stderr)
        if args.profile and not interrupted:
            from common.cli.profile import profile_pairs

            profile_pairs(pairs, ROOT / "results" / pairs[0].chapter, args.device)
        if interrupted or interrupt.came():
            return 130
    return 1 if unwritten or runner.has_failed(record) else 0


def write(args: Namespace, pairs: list[Pair], record: Record, unwritten: list[str]) -> list[str]:
    """Write the plot, Markdown and record that were asked for. Returns lines to print."""
    from common.record import archive

    said = []
    if args.plot and any(row.ratio for pair in record.pairs for row in pair.rows):
        from common.show import heatmap, plot

        with noting(unwritten):
            plot.save(heatmap.for_record(record), args.plot)
    elif args.plot:
        said.append(f"{args.plot} not drawn: nothing was timed")
    if args.markdown and record.pairs:
        from common.show.summary import save_markdown

        with noting(unwritten):
            save_markdown(record, args.markdown)
    if args.record:
        is_whole = args.only == "*" and not (runner.has_failed(record) or record.environment["interrupted"])
        kept, left_out = (record, []) if is_whole else archive.whole(record, pairs)
        said += left_out
        with noting(unwritten):
            said += [f"recorded in {path}" for path in archive.keep_record(kept, is_part=not is_whole)]
    return said


def run(argv: list[str] | None) -> int:
    """Run one request. Returns the exit status. Raises OneLine."""
    args = parse(argv, str(__doc__))
    if args.limits:
        from common.show import console

        with interrupt.held_back():
            console.print_limits(*runner.survey_apart(args.device), console.make_console())
        return 0
    if args.compare:
        from common.cli.regressions import compare_files

        return compare_files(*args.compare)
    pairs = select(args)
    if args.list:
        print(listing(pairs))
        return 0
    check_request(args, pairs)
    if args.count:
        from common.cli.count import count_pairs

        return count_pairs(args, pairs)
    if left_out := lacking(pairs, args.size):
        print(f"left out, because they have no size {args.size}: {', '.join(left_out)}", file=sys.stderr)
    return xray(args, pairs) if args.xray else measure(args, pairs)


def xray(args: Namespace, pairs: list[Pair]) -> int:
    """Show the kernels' machine code. Exit status 1 if a version fails by its own fault."""
    from common.show.console import make_console
    from common.xray.picture import xray
    from common.xray.show import print_pictures

    failed = False
    with interrupt.held_back():
        for pair in pairs:
            for size in sizes_of(pair, args.size, on_cpu=False):
                pictures = xray(pair, args.arch, size)
                title = pair.name if size == "default" else f"{pair.name} {size}"
                print_pictures(title, pictures, make_console(), args.code)
                failed |= any(picture.failed for picture in pictures)
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    return program.status_of("benchmark.py", lambda: run(argv))


if __name__ == "__main__":
    program.finish(main)
