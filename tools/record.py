"""Record all that this machine can record and that is stale or missing: python -m tools.record

A step measures a pair at the sizes of a class, the machine's sheet or the calibration, or grades a solution. Its result
is kept under recorded/ before the next step begins. Started again after a stop, it goes on with what is left. Stale
results come first, then missing ones: default sizes, calibration, exercises, other sizes.

Exit status: 0 nothing is left; 1 something is left; 2 wrong usage, or a device that cannot be used; 130 interrupted.
"""

import signal

if __name__ == "__main__":  # imports take a second; Ctrl-C during them ends the program without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from common.isolation import interrupt, worker
from common.machine.device import default_device
from common.machine.survey import survey_apart
from common.pairs.pair import chapters, class_of, discover
from common.pairs.user_error import UserError, printable
from common.program import Parser, device_name, finish, status_of
from common.record import store
from common.record.files import RECORDED, Problems, check_writable
from tools import record_steps
from tools.record_steps import Part, Step


def plan(device: str, info: dict[str, Any], folder: Path, only_default: bool, problems: Problems) -> list[Step]:
    """All steps in their order. Files that cannot be read are noted in `problems`. Raises UserError."""
    pairs = [pair for path in chapters().values() for pair in discover(path)]
    classes = dict.fromkeys(class_of(size) for pair in pairs for size in pair.timed_sizes)
    of_class: dict[str, list[Step]] = {name: [] for name in (["default"] if only_default else ["default", *classes])}
    recorded = cache(lambda chapter, name: store.chapter_records(chapter, name, folder, problems))
    for name, pair in ((name, pair) for name in of_class for pair in pairs):
        for part in record_steps.pair_parts(pair, name, info, recorded):
            more = f" and {len(part.sizes) - 1} more" if len(part.sizes) > 1 else ""
            what = f"{pair.chapter} {pair.name} {part.sizes[0]}{more}"
            do = partial(record_steps.record_pair, pair, part.sizes, device, folder)
            of_class[name].append(Step(what, part, do))

    def steps_of(what: str, parts: list[Part], do: Callable[[str, Path], str]) -> list[Step]:
        return [Step(what, part, partial(do, device, folder)) for part in parts]

    sheet = steps_of("hardware", record_steps.sheet_parts(info, folder, problems), record_steps.record_sheet)
    parts = record_steps.calibration_parts(info, folder, problems)
    calibration = steps_of("calibration", parts, record_steps.calibrate)
    solutions = [
        Step(f"exercise {exercise.id}", part, partial(record_steps.record_solution, exercise, info, folder))
        for exercise, part in record_steps.exercise_parts(info, folder, problems)
        if not only_default and device == default_device()  # on which they are graded
    ]
    steps = [*sheet, *of_class.pop("default"), *calibration, *solutions, *chain(*of_class.values())]
    return sorted(steps, key=lambda step: not step.part.is_stale)


def carry_out(steps: list[Step], budget_s: float, clock: Callable[[], float] = time.monotonic) -> Iterator[str]:
    """Carry out the steps that are expected to end within the budget. Yields a line for each that is left.

    Raises KeyboardInterrupt after the lines of all that is left then.
    """
    begin, times = clock(), dict[str, list[float]]()
    for number, step in enumerate(steps):
        start, took = clock(), times.setdefault(step.kind, [])
        if start - begin + step.expected_s(took) > budget_s:
            yield step.line(took)
            continue
        print(printable(f"[{number + 1} of {len(steps)}] {step.line(took)}"), flush=True)
        try:
            reason = step.do()
        except KeyboardInterrupt:
            yield from (later.line(times.get(later.kind, [])) for later in steps[number:])
            raise
        except (UserError, worker.ChildFailed) as error:
            reason = str(error)
        took.append(clock() - start)
        if reason:
            yield f"{step.what}: {reason}"


def seconds(text: str) -> float:
    """For argparse: a time above zero."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: not a number of seconds above 0")
    return value


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Parse the arguments. Raises UsageError."""
    parser = Parser("python -m tools.record", description=str(__doc__))
    add = parser.add_argument
    add("--budget", type=seconds, default=math.inf, metavar="SECONDS", help="begin no step expected to end later")
    add("--only-default", action="store_true", help="default sizes, the sheet and the calibration only")
    add("--dry-run", action="store_true", help="list the steps in their order, and measure nothing")
    add("--device", type=device_name, metavar="DEV", help="cuda:0, cpu, ... (default: the first GPU, else the CPU)")
    return parser.parse_args(argv)


def run(argv: list[str] | None, folder: Path) -> int:
    """Plan, measure, say what is left. Raises UserError, KeyboardInterrupt."""
    begin, args, problems = time.monotonic(), parse(argv), Problems()
    device, remaining = args.device or default_device(), list[str]()
    check_writable(folder / "any", makes_folder=True)
    info, _ = survey_apart(device, not args.dry_run)
    steps = plan(device, info, folder, args.only_default, problems)
    for problem in problems.values():
        print(f"record: not read: {problem}", file=sys.stderr)
    if args.dry_run:
        print("\n".join(step.line([]) for step in steps) or "nothing is left")
        return 1 if steps else 0
    try:
        for line in carry_out(steps, args.budget - (time.monotonic() - begin)):
            remaining.append(line)
    finally:
        for line in remaining:
            print(printable(f"left: {line}"))
    if not remaining:
        print("nothing is left")
    return 1 if remaining else 0


def main(argv: list[str] | None = None, folder: Path = RECORDED) -> int:
    with interrupt.hold_signals():
        status = status_of("record", lambda: run(argv, folder))
        return 130 if interrupt.was_interrupted() else status


if __name__ == "__main__":
    finish(main)
