"""learn.py: its commands and their arguments."""

import argparse
from collections.abc import Callable
from pathlib import Path

from common import program
from common.cli import exercises as run

EXAMPLES = """
  learn.py start                    the exercise that you are at: what it asks, and your file for it
  learn.py next                     the exercise after it
  learn.py start ch3/softmax        this one; `next` goes on from it
  learn.py check                    grades the file of the exercise that you worked at last
  learn.py watch                    grades it each time that you save it
  learn.py hint ch1/coalesce        one hint more, of three
  learn.py predict ch1/ratios softmax=3..4 chain=3..4
"""
COMMANDS: tuple[tuple[str, Callable[[argparse.Namespace], int], str | int | None], ...] = (
    ("list", run.list_all, None), ("next", run.start_next, None), ("start", run.start, "?"), ("check", run.check, "?"),
    ("watch", run.watch, "?"), ("hint", run.hint, "?"), ("reset", run.reset, "?"), ("solution", run.solution, "?"),
    ("predict", run.predict, 1), ("progress", run.show_progress, None), ("export", run.export, None),
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    return program.status_of("learn.py", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    args = _parse(argv)
    status: int = args.run(args)
    return status


def _parse(argv: list[str] | None) -> argparse.Namespace:
    """Raises UsageError."""
    parser = program.Parser("learn.py", description="Exercises.", epilog="examples:" + EXAMPLES)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=program.Parser)

    for name, function, of in COMMANDS:
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(run=function)
        if of is not None:
            at_hand = " (default: the one at hand)" * (of == "?")
            command.add_argument("id", nargs=of, metavar="ID", help=f"such as ch1/coalesce{at_hand}")
        if function is run.predict:
            command.add_argument("answers", nargs="+", metavar="NAME=VALUE", help="softmax=3..4, for each question")
        if function is run.export:
            command.add_argument("file", type=Path)
    return parser.parse_args(argv)
