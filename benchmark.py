#!/usr/bin/env python3
"""Measure the course's pairs on this machine: what each optimization is worth, and proof that its versions agree.

Exit status: 0 fine (`slower` is a result); 1 a pair is invalid or died, a kernel does not compile, a result could not
be written; 2 usage, a file that breaks the contract, a place that cannot be written to; 3 --compare found a
regression; 130 interrupted.
"""

import signal

if __name__ == "__main__":  # importing takes a second or more, in which Ctrl-C is to end us without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from argparse import Namespace

from common import program
from common.cli.request import check_request, lacking, listing, parse, select
from common.isolation import interrupt
from common.pairs.pair import ROOT, Pair
from common.record import recording, result


def measure(args: Namespace, pairs: list[Pair]) -> int:
    """The exit status of a run, with all that it prints and writes."""
    from common.engine import runner
    from common.show import console

    unwritten: list[str] = []

    def keep(record: result.Record) -> None:
        unwritten.clear()
        if args.json and record.pairs:  # a run that was stopped before its first result replaces no file
            with result.noting(unwritten):
                result.save_record(record, args.json)

    choices = (args.size, args.device, args.fast, args.check)
    with interrupt.held_back():
        with console.measuring(len(pairs)) as (on_progress, on_neighbours):
            record = runner.run_pairs(pairs, *choices, on_progress, keep, on_neighbours)
        keep(record)
        # before anything is printed, which a closed pipe or a full disk ends
        written = write(args, pairs, record, unwritten)
        console.print_record(record, console.make_console(), pairs)
        if args.verbose:
            console.print_spent(record, console.make_console())
        print(written, end="")
        interrupted = record.environment["interrupted"]
        if interrupted:
            print(f"interrupted after {len(record.pairs)} of {len(pairs)} pairs", file=sys.stderr)
        for problem in unwritten:
            print(f"benchmark.py: {problem}", file=sys.stderr)
        if args.profile and not interrupted:
            from common.cli.compare import profile_pairs

            profile_pairs(pairs, ROOT / "results" / pairs[0].chapter, args.device)
        if interrupted or interrupt.came():
            return 130
    return 1 if unwritten or runner.has_failed(record) else 0


def write(args: Namespace, pairs: list[Pair], record: result.Record, unwritten: list[str]) -> str:
    """What was asked for besides --json: plot, Markdown, record. Returns what there is to say of it."""
    from common.engine.runner import has_failed

    said = ""
    if args.plot and any(row.ratio for pair in record.pairs for row in pair.rows):
        from common.show import heatmap, plot

        with result.noting(unwritten):
            plot.save(heatmap.for_record(record), args.plot)
    elif args.plot:
        said = f"{args.plot} not drawn: nothing was timed\n"
    if args.markdown and record.pairs:
        from common.show.summary import save_markdown

        with result.noting(unwritten):
            save_markdown(record, args.markdown)
    if not args.record:
        return said
    is_whole = args.only == "*" and not (has_failed(record) or record.environment["interrupted"])
    kept, left_out = (record, []) if is_whole else recording.whole(record, pairs)
    said += "".join(f"{text}\n" for text in left_out)
    with result.noting(unwritten):
        paths = recording.keep_record(kept, is_part=not is_whole) if kept.pairs else []
        said += "".join(f"recorded in {path}\n" for path in paths)
    return said


def run(argv: list[str] | None) -> int:
    """Raises OneLine."""
    args = parse(argv, str(__doc__))
    if args.limits:
        from common.engine import runner
        from common.show import console

        with interrupt.held_back():
            console.print_limits(*runner.survey_apart(args.device), console.make_console())
        return 0
    if args.compare:
        from common.cli.compare import compare_files

        return compare_files(*args.compare)
    pairs = select(args)
    if args.xray:
        return xray(args, pairs)
    if not args.list:
        check_request(args, pairs)
        say_left_out(pairs, args.size)
        return measure(args, pairs)
    print(listing(pairs))
    return 0


def say_left_out(pairs: list[Pair], size: str) -> None:
    if left_out := lacking(pairs, size):
        print(f"left out, having no size {size}: {', '.join(left_out)}", file=sys.stderr)


def xray(args: Namespace, pairs: list[Pair]) -> int:
    """Status 1 if a version cannot be seen for a fault of its own."""
    from common.engine.runner import sizes_of
    from common.show.console import make_console
    from common.xray.picture import xray
    from common.xray.show import print_pictures

    check_request(args, pairs)
    say_left_out(pairs, args.size)
    failed = False
    with interrupt.held_back():
        for pair in pairs:
            for size in sizes_of(pair, args.size, on_cpu=False):
                title = pair.name if size == "default" else f"{pair.name} {size}"
                pictures = xray(pair, args.arch, size)
                print_pictures(title, pictures, make_console(), args.code)
                failed = failed or any(picture.failed for picture in pictures)
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    return program.status_of("benchmark.py", lambda: run(argv))


if __name__ == "__main__":
    program.finish(main)
