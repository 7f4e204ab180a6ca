"""The arguments of benchmark.py: parsed, and checked completely before anything runs."""

import argparse
from pathlib import Path

from common.pairs.contract import Version
from common.pairs.pair import ROOT, NoMatch, Pair, chapters, discover, short
from common.pairs.user_error import printable, wrap_text
from common.program import Parser, UsageError, chapter_number, device_name, picture_path
from common.xray.occupancy import ARCHITECTURES, MACHINES

COUNTED_FOR = "sm_90"  # unless another architecture is asked for
UNTIMED_SIZES = {  # sizes that --list shows and --size does not take
    "check": " to time (it is verified only, by --check)",
    "count": " to time (it is counted only, by --count)",
}
TASK_OPTIONS = {  # what to do -> the options that it takes; the last is to measure pairs
    "list": "chapter path all only verbose",
    "limits": "device",
    "compare": "",
    "new": "",
    "show": "stats markdown verbose record",
    "xray": "chapter path all size arch code",
    "count": "chapter path all size arch json markdown",
    "race": "chapter path all",
    "timeline": "chapter path all size device record recorded counters",
    "": "chapter path all only size device check fast stats json plot markdown verbose profile record",
}
EXAMPLES = """
  benchmark.py --chapter 1                          every pair of the chapter
  benchmark.py --all --record                       every chapter, each into its record
  benchmark.py --list                               every version in one sentence, with what it needs
  benchmark.py --chapter 1 --only 'coal*' --device cuda:0
  benchmark.py --new DIR NAME                       two files to begin a pair of your own with
  benchmark.py --path DIR --check                   your own pairs, verified only
  benchmark.py --chapter 1 --fast --json F.json --plot F.png
  benchmark.py --show F.json --stats                the table of a record, with means and spreads
  benchmark.py --compare OLD.json NEW.json          regressions between two runs
  benchmark.py --xray coalescing --arch sm_90       its kernels as machine code, compiled for an H100
  benchmark.py --timeline cuda_graphs:optimized     where a version's call waits: lanes of the CPU and the GPU
  benchmark.py --race softmax                       do its kernels' programs race? seen without a GPU
  benchmark.py --count softmax                      what its versions ask of the memory, counted without a GPU
"""


def parse(argv: list[str] | None, name: str, description: str, chapter: int | None = None) -> argparse.Namespace:
    """Parse the arguments of a program; `chapter`: of its compare.py, which measures no other. Raises UsageError."""
    parser = Parser(name, description=description, epilog=None if chapter else "examples:" + EXAMPLES)
    parser.set_defaults(chapter=chapter, path=None, all=False)
    what = parser.add_argument_group("what")
    if chapter is None:
        add = what.add_mutually_exclusive_group().add_argument
        add("--chapter", type=chapter_number, metavar="N", help="the pairs of chapter N")
        add("--path", type=Path, metavar="DIR", help="the pairs of any folder")
        add("--all", action="store_true", help="the pairs of every chapter")
    add = what.add_argument
    add("--only", default="*", metavar="PATTERN", help="pairs whose names match, as in 'coal*'")
    size = "one or more names shown by --list -v (default: default; with --count: count); `all`: every size"
    add("--size", metavar="NAME,...", help=size)
    add = parser.add_argument_group("how").add_argument
    add("--device", type=device_name, metavar="DEV", help="cuda:0, cpu, ... (default: the first GPU, else the CPU)")
    add("--check", action="store_true", help="verify only, time nothing")
    add("--fast", action="store_true", help="half the blocks: wider intervals")
    instead = parser.add_argument_group("instead of measuring pairs")
    add = instead.add_mutually_exclusive_group().add_argument
    add("--list", action="store_true", help="list versions and what they need; with -v also sizes")
    add("--limits", action="store_true", help="measure what this machine can do")
    add("--new", nargs=2, metavar=("DIR", "NAME"), help="write a pair to begin with; in chN a new chapter, too")
    add("--show", type=Path, metavar="F.json", help="the table of a record")
    add("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two records: what regressed")
    add("--xray", metavar="PATTERN", help="kernels of pairs as machine code; needs no GPU")
    add("--count", metavar="PATTERN", help="count the memory traffic of pairs; needs no GPU")
    where = "where the time of a call goes: lanes of the CPU and the GPU, gaps named"
    add("--timeline", metavar="PATTERN[:VERSION]", help=where)
    add("--race", metavar="PATTERN", help="look for races between a kernel's programs; needs no GPU")
    add = parser.add_argument_group("with --xray, or --count").add_argument
    default = f"default {', '.join(ARCHITECTURES)}; with --count one: {COUNTED_FOR}"
    add("--arch", metavar="SM,...", help=f"architectures of GPUs ({default})")
    add("--code", choices=("sass", "ptx"), help="also print the machine code, or PTX")
    add = parser.add_argument_group("with --timeline").add_argument
    add("--recorded", action="store_true", help="draw what is recorded, instead of profiling here")
    add("--counters", action="store_true", help="read a GPU's counters of each kernel, too (Nsight Compute)")
    add = parser.add_argument_group("output").add_argument
    stats = "beside each version: mean, standard deviation, least, largest, n, errors, peak memory"
    add("--stats", action="store_true", help=stats)
    add("--json", type=Path, metavar="F", help="write the record with all samples, or the counts")
    add("--plot", type=picture_path, metavar="F.png", help="draw the speedups; over several sizes a picture a pair")
    add("--markdown", type=Path, metavar="F.md", help="write the table as Markdown")
    add("-v", "--verbose", action="store_true", help="show how the time was spent; with --list, the sizes")
    add("--profile", action="store_true", help="afterwards profile all versions, into results/")
    record = "keep the record of a chapter, of --only some pairs, or of --show F.json, under recorded/"
    add("--record", action="store_true", help=record)
    args = parser.parse_args(argv)
    _check_options(parser, args)
    default_architectures = (COUNTED_FOR,) if args.count else ARCHITECTURES
    args.arch = list(default_architectures) if args.arch is None else args.arch.split(",")
    if unknown := [name for name in args.arch if name not in MACHINES]:
        parser.error(f"--arch {','.join(unknown)}: there are {', '.join(MACHINES)}")
    if args.count and len(args.arch) > 1:
        parser.error(f"--arch {','.join(args.arch)}: --count takes one architecture")
    if args.size is None:
        args.size = "count" if args.count else "default"
    return args


def _check_options(parser: Parser, args: argparse.Namespace) -> None:
    """Raises UsageError for an option that what is to be done does not take."""
    task = next((name for name in TASK_OPTIONS if name and getattr(args, name)), "")
    words = {name: f"--{name}" if name else "a measurement of pairs" for name in TASK_OPTIONS}
    for option, value in vars(args).items():
        tasks = [words[name] for name, options in TASK_OPTIONS.items() if option in options.split()]
        if tasks and words[task] not in tasks and value != parser.get_default(option):
            parser.error(f"--{option} does not go with {words[task]}: it belongs to {' or '.join(tasks)}")


def chapter_folder(number: int) -> Path:
    """Raises UsageError."""
    if number not in chapters():
        raise UsageError(f"there is no chapter {number}: there are {', '.join(map(str, chapters()))}")
    return chapters()[number]


def select(args: argparse.Namespace) -> list[Pair]:
    """The requested pairs. Raises UsageError or ContractError."""
    if args.path is not None:
        folders = [args.path.absolute()]  # absolute: a pair may change the working folder
    elif args.chapter is not None:
        folders = [chapter_folder(args.chapter)]
    elif args.all or args.list or args.xray or args.count or args.race or args.timeline:
        folders = list(chapters().values())
    else:
        *options, last = ["chapter N", "path DIR", "all", *filter(None, TASK_OPTIONS)]
        text = f"--{', --'.join(options)} or --{last}"
        raise UsageError(f"nothing to do: pass {text} (--help shows all)")
    timeline = (args.timeline or "").partition(":")[0]
    if args.timeline is not None and not timeline:
        raise UsageError(f"--timeline {args.timeline!r} names no pair: it takes PATTERN or PATTERN:VERSION")
    only = args.xray or args.count or args.race or timeline or args.only
    pairs, names = list[Pair](), list[str]()
    for folder in folders:
        try:
            pairs += discover(folder, only)
        except NoMatch as error:
            names += error.names
    if not pairs:
        raise NoMatch(folders[0].name if len(folders) == 1 else "any chapter", only, names)
    return pairs


def check_request(args: argparse.Namespace, pairs: list[Pair]) -> None:
    """Check a request before anything runs. Raises UsageError or RecordError."""
    from common.record.files import check_writable  # a slow import

    sizes = {size for pair in pairs for size in (pair.sizes if args.count else pair.timed_sizes)}
    names = {"all"} | ({"count"} if args.count else set()) | sizes | {size.split("/")[0] for size in sizes}
    requested = args.size.split(",")
    for size in requested:
        if size not in names:
            how = "" if args.count else UNTIMED_SIZES.get(size.split("/")[0], "")
            raise UsageError(f"no selected pair has a size {size!r}{how}: there are {', '.join(sorted(names))}")
    has_parts = any("/" in size or size == "cpu" for size in requested)
    if args.record and not args.timeline and (args.path or args.fast or args.check or has_parts):
        excluded = "--path, --fast, --check, and a --size other than classes (`large`) or `all`"
        raise UsageError(f"--record keeps whole classes of a chapter's sizes, measured in full: it excludes {excluded}")
    if args.record and args.timeline and args.path:
        raise UsageError("--record keeps profiles of the course's chapters: it excludes --path")
    if args.recorded and (args.record or args.device or args.counters):
        raise UsageError("--recorded draws a file, and profiles nothing: it excludes --record, --device and --counters")
    for path in filter(None, (args.json, args.plot, args.markdown)):
        check_writable(path)
    for folder in ["recorded"] * args.record + ["results"] * args.profile:
        for chapter in {pair.chapter for pair in pairs}:
            check_writable(ROOT / folder / chapter, makes_folder=True)


def listing(pairs: list[Pair], is_verbose: bool = False, width: int | None = None) -> str:
    """Each pair in its sentence, and its ladder: a line a version with its sentence and its needs, wrapped at a width.

    `is_verbose`: also the sizes.
    """
    lines = list[str]()
    has_many = len({pair.chapter for pair in pairs}) > 1
    for previous, pair in zip([None, *pairs], pairs, strict=False):
        if has_many and not (previous and previous.chapter == pair.chapter):
            lines += [""] * bool(lines) + [pair.chapter.replace("ch", "Chapter "), ""]
        name = pair.name + f" (in {pair.ranks} processes or more)" * (pair.ranks > 1)
        lines.append(wrap_text(printable(f"{name}: {pair.summary}" if pair.summary else name), width, "    "))
        column = max(len(short(version.label)) for version in pair.versions)
        for version in pair.versions:
            needs = f" [{', '.join(_needs(version))}]" if _needs(version) else ""
            text = f"  {short(version.label):{column}}  {version.summary}{needs}"
            lines.append(wrap_text(printable(text), width, " " * (column + 4)))
        if is_verbose:
            lines.append(wrap_text(printable(f"  sizes: {', '.join(pair.sizes)}"), width, "    "))
    return "\n".join(lines)


def _needs(version: Version) -> list[str]:
    """What a machine must have for a version, in short words."""
    requirements = version.constants.get("REQUIRES", {})
    gpus = requirements.get("gpus", int(version.needs_cuda))
    needs = [f"{gpus} GPUs" if gpus > 1 else "GPU"] * bool(gpus)
    needs += [f"capability {version.capability_said}"] if "capability" in requirements else []
    return needs + sorted(version.imports & {"triton", "cupy"})
