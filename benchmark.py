#!/usr/bin/env python3
"""Measure the course's pairs on this machine: the gain of each optimization, and a proof that its versions agree.

Exit status: 0 success (`slower` is a result); 1 a pair is invalid or crashed, a kernel does not compile, its programs
race, a version fails while counted, or a result cannot be written; 2 wrong usage, a file that breaks the contract, or a
place that cannot be written to; 3 --compare found a regression; 130 interrupted.
"""

import signal

if __name__ == "__main__":  # imports take a second or more; Ctrl-C during them ends the program without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
from argparse import Namespace
from dataclasses import replace
from itertools import groupby
from typing import Any

from common import program
from common.cli.arguments import check_request, listing, parse, select
from common.isolation import interrupt
from common.pairs.pair import ROOT, Pair, chapters, discover, pairs_without
from common.pairs.user_error import printable, width_of

# Slow imports (numpy, rich, matplotlib) are in functions: --help and --list must answer at once.


def measure(args: Namespace, pairs: list[Pair]) -> int:
    """Measure, print, write files. Returns the exit status."""
    from common.engine import runner
    from common.record import record_file
    from common.record.files import is_replaceable, note_errors
    from common.show import console

    unwritten = list[str]()

    def save_progress(record: Any, is_last: bool = False) -> None:
        unwritten.clear()
        if args.json and record.pairs:  # a run that is stopped before its first result replaces no file
            with note_errors(unwritten):
                if is_last or is_replaceable(args.json):  # a pipe or a device gets one record, not one a pair
                    record_file.save_record(record, args.json)

    with interrupt.hold_signals():
        with console.measurement_progress(len(pairs)) as (on_progress, on_neighbours):
            calls = {"on_progress": on_progress, "on_record": save_progress, "on_neighbours": on_neighbours}
            record = runner.run_pairs(pairs, args.size, args.device, args.fast, args.check, **calls)
        save_progress(record, is_last=True)
        present(args, pairs, record, unwritten)
        if interrupted := record.environment["interrupted"]:
            print(f"interrupted after {len(record.pairs)} of {len(pairs)} pairs", file=sys.stderr)
        elif args.profile:
            from common.cli.profile_commands import profile_pairs

            for chapter, group in groupby(pairs, lambda pair: pair.chapter):
                profile_pairs(list(group), ROOT / "results" / chapter, args.device)
        if interrupted or interrupt.was_interrupted():
            return 130
    return 1 if unwritten or runner.has_failed(record) else 0


def present(args: Namespace, pairs: list[Pair], record: Any, unwritten: list[str]) -> int:
    """Write a record as was asked, then print it. `unwritten` gets what fails. Returns the exit status."""
    from common.show.console import make_console, print_record, print_spent

    lines = write(args, pairs, record, unwritten)  # first: a closed pipe or a full disk ends the printing
    print_record(record, make_console(), pairs, args.stats)
    if args.verbose:
        print_spent(record, make_console())
    for line in lines:
        print(printable(line))
    for problem in unwritten:
        print(f"benchmark.py: {problem}", file=sys.stderr)
    return 1 if unwritten else 0


def write(args: Namespace, pairs: list[Pair], record: Any, unwritten: list[str]) -> list[str]:
    """Write the plot, Markdown and records that were asked for. Returns lines to print."""
    from common.engine.runner import has_failed
    from common.record import store
    from common.record.files import note_errors

    lines = []
    if args.plot and any(row.ratio for pair in record.pairs for row in pair.rows):
        from common.show import heatmap, plot

        with note_errors(unwritten):
            for name, figure in heatmap.figures_for(record).items():
                path = args.plot.with_stem(f"{args.plot.stem}_{name}") if name else args.plot
                plot.save(figure, path)
                lines += [f"drawn: {path}"] if name else []
    elif args.plot:
        lines.append(f"{args.plot} not drawn: nothing was timed")
    if args.markdown and record.pairs:
        from common.show.summary import save_markdown

        with note_errors(unwritten):
            save_markdown(record, args.markdown, args.stats)
    for chapter, group in groupby(record.pairs, lambda pair: pair.chapter) if args.record else ():
        part = replace(record, pairs=list(group))
        is_complete = args.only == "*" and not (args.show or has_failed(part) or record.environment["interrupted"])
        of_chapter = [pair for pair in pairs if pair.chapter == chapter]
        recordable, left_out = (part, []) if is_complete else store.recordable_part(part, of_chapter)
        (unwritten if args.show and not recordable.pairs else lines).extend(left_out)
        with note_errors(unwritten):
            lines += [f"recorded in {path}" for path in store.keep_record(recordable)]
    return lines


def inspect(args: Namespace, pairs: list[Pair]) -> int:
    """Look at what versions run, in place of measuring them. Returns the exit status."""
    if args.timeline:
        from common.cli.profile_commands import timeline_pairs

        return timeline_pairs(args, pairs)
    from common.cli.inspect_pairs import race_pairs, xray_pairs

    return xray_pairs(args, pairs) if args.xray else race_pairs(pairs)


def run(args: Namespace) -> int:
    """Run one request. Returns the exit status. Raises UserError."""
    if args.limits:
        from common.engine import runner
        from common.show import console

        with interrupt.hold_signals():
            console.print_limits(*runner.survey_apart(args.device), console.make_console())
        return 0
    if args.new:
        from common.cli.skeletons import new_pair

        return new_pair(*args.new)
    if args.compare:
        from common.cli.regression_check import compare_files

        return compare_files(*args.compare)
    if args.show:
        from common.record.files import check_writable
        from common.record.record_file import load_record

        if args.markdown:
            check_writable(args.markdown)
        record, folders = load_record(args.show), chapters().values() if args.record else ()
        recorded = {pair.chapter for pair in record.pairs}
        return present(args, [pair for path in folders if path.name in recorded for pair in discover(path)], record, [])
    pairs = select(args)
    if args.list:
        print(listing(pairs, args.verbose, width_of(sys.stdout)))
        return 0
    check_request(args, pairs)
    if args.count:
        from common.cli.counts import count_pairs

        return count_pairs(args, pairs)
    if left_out := pairs_without(pairs, args.size):
        print(f"left out, because they have no size {args.size}: {', '.join(left_out)}", file=sys.stderr)
    if args.xray or args.race or args.timeline:
        return inspect(args, pairs)
    return measure(args, pairs)


def main(argv: list[str] | None = None, name: str = "benchmark.py", text: str = "", chapter: int | None = None) -> int:
    """The whole program, or a chapter's compare.py. Returns the exit status."""
    return program.status_of(name, lambda: run(parse(argv, name, text or str(__doc__), chapter)))


if __name__ == "__main__":
    program.finish(main)
