"""The maintainers' tools, each a file. `python -m tools COMMAND --help` says more of one, and what its options are."""

import signal

if __name__ == "__main__":  # imports take a second or more; Ctrl-C during them ends the program without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import ast
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from common.pairs.pair import ROOT
from common.program import Parser, chapter_number, device_name, finish, status_of
from tools.calibration import RUNS


def above_zero(number: Callable[[str], float], what: str) -> Callable[[str], float]:
    """A type for argparse. `number`: int or float; `what`: the unit."""

    def value_of(text: str) -> float:
        with suppress(ValueError):
            if (value := number(text)) > 0:
                return value
        raise argparse.ArgumentTypeError(f"{text}: not a number of {what} above 0")

    return value_of


def option(*names: str, **how: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, how


DEVICE = option("--device", type=device_name, metavar="DEV", help="cuda:0, cpu, ... (default: the first GPU, or CPU)")
ONLY = option("--only", default="*", metavar="PATTERN", help="pairs whose names match, as in 'coal*'")
CHAPTER = option("--chapter", type=chapter_number, metavar="N", help="the pairs of chapter N only")
BUDGET = "begin no step that is expected to end later"
COMMANDS = {  # the file with its function `run`, whose docstring is the help -> options
    "tools/record.py": (
        option("--budget", type=above_zero(float, "seconds"), default=math.inf, metavar="SECONDS", help=BUDGET),
        option("--only-default", action="store_true", help="default sizes, the sheet and the calibration only"),
        option("--dry-run", action="store_true", help="list the steps in their order, and measure nothing"),
        DEVICE,
    ),
    "tools/readmes.py": (),
    "tools/carry_records.py": (
        option("revision", help="git revision of the recorded code"), CHAPTER,
        option("--map", metavar="FILE", help="new names of files, functions, labels and pairs (TOML)"),
    ),
    "tools/count_chapters.py": (),
    "tools/random_sizes.py": (
        option("--seed", required=True, metavar="NAME", help="any text: the same text draws the same sizes"),
        CHAPTER, ONLY, DEVICE,
        option("--list", action="store_true", help="draw only: pairs, with arguments of `inputs`"),
        option("--json", type=Path, metavar="F", help="write the record with all samples"),
    ),
    "tools/second_gpu.py": (
        option("name", help='the exact name of a GPU in common/machine/datasheets.json: "NVIDIA L4"'),
    ),
    "tools/solutions.py": (
        option("id", nargs="*", help="an exercise: ch1/coalesce (default: all)"),
        option("--record", action="store_true", help="keep it in recorded/<device>/exercises.json"),
    ),
    "tools/given_profiles.py": (
        option("id", nargs="+", help="an exercise whose solution has a program: ch8/images"), DEVICE,
    ),
    "tools/counter_check.py": (
        ONLY, option("--record", action="store_true", help="keep the result as recorded/<device>/traffic.json"),
    ),
    "tools/calibration/calibrate.py": (
        option("--runs", type=above_zero(int, "runs"), default=RUNS, metavar="N", help=f"when it is quiet ({RUNS})"),
        option("--record", action="store_true", help="keep the result as recorded/<device>/calibration.json"), DEVICE,
    ),
}  # fmt: skip


def parser() -> Parser:
    """Of all commands. Their files are not imported: --help answers at once."""
    of_all = Parser("python -m tools", description=str(__doc__))
    commands = of_all.add_subparsers(title="commands", metavar="COMMAND [OPTION]", required=True, parser_class=Parser)
    for file, options in COMMANDS.items():
        text = str(ast.get_docstring(ast.parse((ROOT / file).read_text(encoding="utf-8"))))
        command = commands.add_parser(Path(file).stem, help=text.partition("\n")[0], description=text)
        command.set_defaults(file=file)
        for names, how in options:
            command.add_argument(*names, **how)
    return of_all


def run(argv: list[str]) -> int:
    """Raises UserError."""
    args = parser().parse_args(argv)
    status: int = import_module(args.file.removesuffix(".py").replace("/", ".")).run(args)
    return status


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    is_command = words[:1] and words[0] in [Path(file).stem for file in COMMANDS]
    return status_of(words[0] if is_command else "python -m tools", lambda: run(words))


if __name__ == "__main__":
    finish(main)
