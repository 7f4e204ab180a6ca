#!/usr/bin/env python3
"""Measure the course's pairs on this machine: what each optimization is worth, and proof that its halves agree.

Exit status: 0 fine (`slower` is a result); 1 a pair is invalid or died; 2 usage, or a file that breaks the contract;
3 --compare found a regression; 130 interrupted.
"""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from common.contract import OneLine
from common.pair import ROOT, Pair, discover

EXAMPLES = """
  benchmark.py --chapter 1                          every pair of the chapter
  benchmark.py --list                               pairs, sizes, what each needs
  benchmark.py --chapter 1 --only 'coal*' --size large --device cuda:0
  benchmark.py --path DIR --check                   your own pairs, verified only
  benchmark.py --chapter 1 --fast --json F --plot F.png
  benchmark.py --compare OLD.json NEW.json          regressions between two runs
"""


class UsageError(OneLine):
    """A request that makes no sense."""


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="examples:" + EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_argument_group("what")
    what.add_argument("--chapter", type=int, metavar="N", help="the pairs of chapter N")
    what.add_argument("--path", type=Path, metavar="DIR", help="the pairs of any folder")
    what.add_argument("--only", default="*", metavar="PATTERN", help="pairs whose names match, as in 'coal*'")
    what.add_argument(
        "--size", default="default", metavar="NAME", help="a size (`small` takes small and small/*), or `all`: a sweep"
    )
    how = parser.add_argument_group("how")
    how.add_argument("--device", metavar="DEV", help="cuda:0, cpu, ... (default: the first GPU, else the CPU)")
    how.add_argument("--check", action="store_true", help="verify only, time nothing")
    how.add_argument("--fast", action="store_true", help="half the blocks: wider intervals")
    instead = parser.add_argument_group("instead of measuring pairs").add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="list pairs, sizes and needs")
    instead.add_argument("--limits", action="store_true", help="measure what this machine can do")
    instead.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two records: what regressed")
    output = parser.add_argument_group("output")
    output.add_argument("--json", type=Path, metavar="F", help="write the record, with all samples")
    output.add_argument("--plot", type=Path, metavar="F.png", help="draw the ratios (or the sweep)")
    output.add_argument("--profile", action="store_true", help="profile both halves afterwards, into results/")
    output.add_argument("--record", action="store_true", help="keep the record under recorded/ (a whole chapter)")
    return parser.parse_args(argv)


def select(args: argparse.Namespace) -> list[Pair]:
    """The pairs that were asked for. Raises UsageError or ContractError."""
    if args.chapter is not None and args.path is not None:
        raise UsageError("--chapter and --path exclude each other")
    chapters = sorted(
        (path for path in ROOT.glob("ch*") if path.is_dir() and path.name[2:].isdigit()),
        key=lambda path: int(path.name[2:]),
    )
    if args.path is not None:
        folders = [args.path]
    elif args.chapter is not None:
        folders = [path for path in chapters if path.name == f"ch{args.chapter}"]
        if not folders:
            raise UsageError(
                f"there is no chapter {args.chapter}: there are {', '.join(path.name[2:] for path in chapters)}"
            )
    elif args.list:
        folders = chapters
    else:
        raise UsageError("nothing to do: say --chapter N, --path DIR, --list, --limits or --compare (--help shows all)")
    return [pair for folder in folders for pair in discover(folder, args.only)]


def check_request(args: argparse.Namespace, pairs: list[Pair]) -> None:
    """All that can be wrong with a request is said before anything runs. Raises UsageError."""
    names = {size.split("/")[0] for pair in pairs for size in pair.sizes} | {
        size for pair in pairs for size in pair.sizes
    }
    if args.size != "all" and (args.size not in names or args.size.split("/")[0] == "check"):
        known = ", ".join(sorted(name for name in names if name.split("/")[0] != "check"))
        raise UsageError(f"no selected pair has a size {args.size!r}: there are all, {known}")
    if args.record and (args.path or args.fast or args.check or args.only != "*" or args.size != "default"):
        raise UsageError(
            "--record keeps a whole chapter, measured in full: it excludes --path, --only, --size, --fast and --check"
        )
    for path in filter(None, (args.json, args.plot)):
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
        if path.is_dir():
            raise UsageError(f"{path}: cannot be written (it is a folder)")
    if args.plot and args.plot.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"{args.plot}: a plot is a .png, .svg or .pdf")


def list_pairs(pairs: list[Pair]) -> int:
    for pair in pairs:
        print(f"{pair.chapter}/{pair.name}: {pair.baseline.summary}")
        for half in pair.variants:
            needs = [*(["an NVIDIA GPU"] if half.needs_cuda else []), *sorted(half.imports & {"triton", "cupy"})]
            needs += [f"{key} {value}" for key, value in half.constants.get("REQUIRES", {}).items()]
            print(f"    {half.label}" + (f"  needs {', '.join(needs)}" if needs else ""))
        print(f"    sizes: {', '.join(pair.sizes)}")
    return 0


def measure(args: argparse.Namespace, pairs: list[Pair]) -> int:
    from common import console, runner
    from common.result import keep_record, save_record

    def keep(record: Any) -> None:
        if args.json:
            save_record(record, args.json)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with console.progress(len(pairs)) as on_progress:
        record = runner.run_pairs(pairs, args.size, args.device, args.fast, args.check, on_progress, keep)
    keep(record)
    console.print_record(record, console.make_console())
    interrupted, failed = record.environment["interrupted"], runner.has_failed(record)
    if args.plot:
        from common import plot

        plot.for_record(record).savefig(args.plot, dpi=150)
    if args.record and not interrupted:
        print(f"recorded in {keep_record(record)}" if not failed else "not recorded: a pair failed")
    if args.profile and not interrupted:
        from common.compare import profile_pairs

        profile_pairs(pairs, ROOT / "results" / pairs[0].chapter, args.device)
    return 130 if interrupted else 1 if failed else 0


def show_limits(device: str | None) -> int:
    from common import console, runner

    info, limits = runner.survey_apart(device)
    console.print_limits(info, limits, console.make_console())
    return 0


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    try:
        if args.limits:
            return show_limits(args.device)
        if args.compare:
            from common.compare import compare_files

            return compare_files(*args.compare)
        pairs = select(args)
        if args.list:
            return list_pairs(pairs)
        check_request(args, pairs)
        return measure(args, pairs)
    except OneLine as error:
        print(f"benchmark.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # before there was anything to keep
        return 130
    except BrokenPipeError:  # the reader of stdout has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
