"""The arguments of benchmark.py: parsed, and checked completely before anything runs."""

import argparse
from pathlib import Path

from common.pairs.one_line import printable
from common.pairs.pair import ROOT, NoMatch, Pair, chapters, discover
from common.program import Parser, UsageError, device_name, picture
from common.record.files import check_writable
from common.xray.occupancy import ARCHITECTURES, MACHINES

COUNTED_FOR = "sm_90"  # unless another architecture is asked for
UNTIMED = {  # sizes that --list shows and --size does not take
    "check": " to time (it is verified only, by --check)",
    "count": " to time (it is counted only, by --count)",
}
EXAMPLES = """
  benchmark.py --chapter 1                          every pair of the chapter
  benchmark.py --list                               pairs, sizes, what each needs
  benchmark.py --chapter 1 --only 'coal*' --device cuda:0
  benchmark.py --path DIR --check                   your own pairs, verified only
  benchmark.py --chapter 1 --fast --json F --plot F.png
  benchmark.py --compare OLD.json NEW.json          regressions between two runs
  benchmark.py --xray coalescing --arch sm_90       its kernels as machine code, compiled for an H100
  benchmark.py --count softmax                      what its versions ask of the memory, counted without a GPU
"""


def parse(argv: list[str] | None, description: str) -> argparse.Namespace:
    """Parse the arguments. Raises UsageError."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser("benchmark.py", description=description, epilog="examples:" + EXAMPLES, formatter_class=raw)
    add = parser.add_argument_group("what").add_argument
    add("--chapter", type=int, metavar="N", help="the pairs of chapter N")
    add("--path", type=Path, metavar="DIR", help="the pairs of any folder")
    add("--only", default="*", metavar="PATTERN", help="pairs whose names match, as in 'coal*'")
    add(
        "--size",
        metavar="NAME,...",
        help="one or more names shown by --list (default: default; with --count: count); `all`: every size",
    )
    add = parser.add_argument_group("how").add_argument
    add("--device", type=device_name, metavar="DEV", help="cuda:0, cpu, ... (default: the first GPU, else the CPU)")
    add("--check", action="store_true", help="verify only, time nothing")
    add("--fast", action="store_true", help="half the blocks: wider intervals")
    instead = parser.add_argument_group("instead of measuring pairs")
    add = instead.add_mutually_exclusive_group().add_argument
    add("--list", action="store_true", help="list pairs, sizes and needs")
    add("--limits", action="store_true", help="measure what this machine can do")
    add("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two records: what regressed")
    add("--xray", metavar="PATTERN", help="kernels of pairs as machine code; needs no GPU")
    add("--count", metavar="PATTERN", help="count the memory traffic of pairs; needs no GPU")
    add = parser.add_argument_group("with --xray, or --count").add_argument
    default = f"default {','.join(ARCHITECTURES)}; with --count one: {COUNTED_FOR}"
    add("--arch", metavar="SM,...", help=f"architectures of GPUs ({default})")
    add("--code", choices=("sass", "ptx"), help="also print the machine code, or PTX")
    add = parser.add_argument_group("output").add_argument
    add("--json", type=Path, metavar="F", help="write the record with all samples, or the counts")
    add("--plot", type=picture, metavar="F.png", help="draw the ratios, or the sweep")
    add("--markdown", type=Path, metavar="F.md", help="write the table as Markdown")
    add("--verbose", action="store_true", help="show how the time was spent")
    add("--profile", action="store_true", help="afterwards profile all versions, into results/")
    add("--record", action="store_true", help="keep the record of a chapter, or of --only some pairs, under recorded/")
    args = parser.parse_args(argv)
    no_measurement = args.list or args.limits or args.compare or args.xray
    if no_measurement and (args.json or args.plot or args.markdown or args.profile or args.record):
        parser.error("--json, --plot, --markdown, --profile and --record belong to a measurement of pairs")
    if args.count and (args.plot or args.profile or args.record):
        parser.error(
            "--plot, --profile and --record belong to a measurement of pairs: --count takes --json, --markdown"
        )
    if (args.arch is not None or args.code) and not args.xray and not (args.count and not args.code):
        parser.error("--arch and --code belong to --xray (--arch also to --count)")
    unasked = (COUNTED_FOR,) if args.count else ARCHITECTURES
    args.arch = list(unasked) if args.arch is None else args.arch.split(",")
    if unknown := [name for name in args.arch if name not in MACHINES]:
        parser.error(f"--arch {','.join(unknown)}: there are {', '.join(MACHINES)}")
    if args.count and len(args.arch) > 1:
        parser.error(f"--arch {','.join(args.arch)}: --count takes one architecture")
    if args.size is None:
        args.size = "count" if args.count else "default"
    return args


def select(args: argparse.Namespace) -> list[Pair]:
    """The requested pairs. Raises UsageError or ContractError."""
    if args.chapter is not None and args.path is not None:
        raise UsageError("--chapter and --path exclude each other")
    if args.path is not None:
        folders = [args.path.absolute()]  # absolute: a pair may change the working folder
    elif args.chapter is not None:
        if args.chapter not in chapters():
            raise UsageError(f"there is no chapter {args.chapter}: there are {', '.join(map(str, chapters()))}")
        folders = [chapters()[args.chapter]]
    elif args.list or args.xray or args.count:
        folders = list(chapters().values())
    else:
        options = "--chapter N, --path DIR, --list, --limits, --compare, --xray or --count"
        raise UsageError(f"nothing to do: pass {options} (--help shows all)")
    only, found, known = args.xray or args.count or args.only, list[Pair](), list[str]()
    for folder in folders:
        try:
            found += discover(folder, only)
        except NoMatch as error:
            known += error.names
    if not found:
        raise NoMatch(folders[0].name if len(folders) == 1 else "any chapter", only, known)
    return found


def check_request(args: argparse.Namespace, pairs: list[Pair]) -> None:
    """Check a request before anything runs. Raises UsageError or RecordError."""
    sizes = {size for pair in pairs for size in (pair.sizes if args.count else pair.timed_sizes)}
    names = {"all"} | ({"count"} if args.count else set()) | sizes | {size.split("/")[0] for size in sizes}
    wanted = args.size.split(",")
    for size in wanted:
        if size not in names:
            how = "" if args.count else UNTIMED.get(size.split("/")[0], "")
            raise UsageError(f"no selected pair has a size {size!r}{how}: there are {', '.join(sorted(names))}")
    has_parts = any("/" in size or size == "cpu" for size in wanted)
    if args.record and (args.path or args.fast or args.check or has_parts):
        excluded = "--path, --fast, --check, and a --size other than classes (`large`) or `all`"
        raise UsageError(f"--record keeps whole classes of a chapter's sizes, measured in full: it excludes {excluded}")
    for path in filter(None, (args.json, args.plot, args.markdown)):
        check_writable(path)
    for folder in ["recorded"] * args.record + ["results"] * args.profile:
        check_writable(ROOT / folder / pairs[0].chapter, makes_folder=True)


def listing(pairs: list[Pair]) -> str:
    """One line per pair, one per variant with what it needs, one with the sizes."""
    lines = []
    for pair in pairs:
        lines.append(f"{pair.chapter}/{pair.name}: {pair.baseline.summary}")
        for version in pair.variants:
            needs = ["an NVIDIA GPU"] * version.needs_cuda + sorted(version.imports & {"triton", "cupy"})
            wanted = version.constants.get("REQUIRES", {})
            needs += [f"{wanted['gpus']} GPUs"] if "gpus" in wanted else []
            needs += [f"compute capability {version.capability_said}"] if "capability" in wanted else []
            lines.append(f"    {version.label}" + (f"  needs {', '.join(needs)}" if needs else ""))
        in_processes = f"; in {pair.ranks} processes or more" if pair.ranks > 1 else ""
        lines.append(f"    sizes: {', '.join(pair.sizes)}{in_processes}")
    return "\n".join(map(printable, lines))
