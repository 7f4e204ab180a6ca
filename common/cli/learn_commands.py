"""learn.py: its commands, each a function from the arguments to the exit status, and their arguments."""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import program
from common.learn import learner_log, submission
from common.learn.exercise import Exercise, exercises, find
from common.learn.forecast_score import ends
from common.learn.gate import CANNOT, PASSED
from common.learn.learner_log import standings
from common.pairs.user_error import width_of, wrap_text
from common.record.files import RecordError, descriptor_of, is_replaceable, write_text

# Slow imports (rich, the engine) are in functions: a first text within a second.

EXAMPLES = """
  learn.py start                    the exercise that you are at: what it asks, and your file for it
  learn.py next                     the exercise after it
  learn.py start ch3/softmax        this one; `next` goes on from it
  learn.py check                    grades the file of the exercise that you worked at last
  learn.py watch                    grades it each time that you save it
  learn.py hint ch1/coalesce        one hint more, of three
  learn.py predict ch1/ratios softmax=3..4 chain=3..4
"""


def current_exercise(args: argparse.Namespace) -> Exercise:
    """The exercise that is named, or the last one that was worked at, or the first one. A hint is no work."""
    name = args.id[0] if isinstance(args.id, list) else args.id
    if name:
        return find(name)
    ids = {exercise.id for exercise in exercises()}
    last = [event["of"] for event in learner_log.events() if event["of"] in ids and event["what"] != "hint"]
    return find(last[-1]) if last else learner_log.next_exercise(exercises())


def list_all(args: argparse.Namespace) -> int:
    """all exercises, and where you stand"""
    from common.cli import learn_text

    course = exercises()
    learn_text.print_list(course, standings(course))
    return 0


def start_next(args: argparse.Namespace) -> int:
    """start the next open exercise after the one that you started or passed last; those you skipped come at the end"""
    course = exercises()
    exercise, last = learner_log.next_exercise(course), learner_log.last_exercise(course)
    status = _show(exercise)
    if last and last != exercise and not standings(course)[last.id].passed:
        print(f"{last.id} stays open: `python learn.py start {last.id}` goes back to it.")
    return status


def start(args: argparse.Namespace) -> int:
    """show an exercise, and make your file for it; without an ID the one that you are at, once passed the next"""
    exercise, course = current_exercise(args), exercises()
    is_over = not args.id and standings(course)[exercise.id].passed
    return _show(learner_log.next_exercise(course) if is_over else exercise)


def _show(exercise: Exercise) -> int:
    """What it asks; the file is copied where there is none yet."""
    from common.cli import learn_text

    if not exercise.work.exists():
        submission.begin(exercise)
    status = _note(learner_log.add, "start", exercise.id, hash=exercise.hash)
    learn_text.print_exercise(exercise, submission.course_path(exercise.work))
    return status


def _note(keep: Callable[..., object], *event: Any, **values: Any) -> int:
    """Have something kept. The exit status: 1, after a line that says so, if it could not be."""
    try:
        keep(*event, **values)
    except RecordError as error:
        print(f"learn.py: this is not kept: {error}", file=sys.stderr)
        return 1
    return 0


def check(args: argparse.Namespace) -> int:
    """grade your file"""
    return _check(current_exercise(args))


def _check(exercise: Exercise) -> int:
    from common.cli import learn_text
    from common.learn.grade import grade  # the engine takes a second

    print(f"{exercise.id}: grading {submission.course_path(exercise.work)}", flush=True)
    width = max([8, *map(len, exercise.answers)])  # a kernel's gates have 7 letters or fewer
    result = grade(exercise, exercise.work, partial(learn_text.print_gate, width=width))
    status = _note(submission.note, result)  # before the end is printed: a closed pipe ends the printing
    learn_text.print_end(result, "" if status else standings([exercise])[exercise.id].late)
    return result.status or status


def watch(args: argparse.Namespace) -> int:
    """grade your file each time that it is saved"""
    from watchfiles import watch as changes

    exercise = current_exercise(args)
    if not exercise.work.exists():
        submission.begin(exercise)
    status = _check(exercise)
    print(
        f"watching {submission.course_path(exercise.work)}: save it to have it graded again, Ctrl-C to end", flush=True
    )
    for _ in changes(exercise.work, raise_interrupt=False):
        status = _check(exercise)
    return status


def hint(args: argparse.Namespace) -> int:
    """show one hint more"""
    exercise = current_exercise(args)
    shown_before = standings([exercise])[exercise.id].hints
    number = min(shown_before + 1, len(exercise.hints))
    status = _note(learner_log.add, "hint", exercise.id, hash=exercise.hash, number=number)
    suffix = " (there are no more)" * (shown_before == number)
    text = f"{exercise.id}, hint {number} of {len(exercise.hints)}{suffix}: {exercise.hints[number - 1]}"
    print(wrap_text(text, width_of(sys.stdout)))
    return status


def reset(args: argparse.Namespace) -> int:
    """put the file back as it was; yours is kept beside it"""
    exercise = current_exercise(args)
    submission.begin(exercise)
    print(f"{submission.course_path(exercise.work)} is as it was at the start")
    return _note(learner_log.add, "reset", exercise.id, hash=exercise.hash)


def solution(args: argparse.Namespace) -> int:
    """show the solution, and why it is one"""
    exercise = current_exercise(args)
    if not standings([exercise])[exercise.id].passed:
        print("You have not passed yet: it is noted that you looked.\n")
    status = _note(learner_log.add, "solution", exercise.id, hash=exercise.hash)
    print(exercise.solution.read_text(encoding="utf-8"))
    return status


def predict(args: argparse.Namespace) -> int:
    """answer a prediction from here"""
    exercise, answers = current_exercise(args), dict[str, Any]()
    if exercise.kind != "predict":
        raise program.UsageError(f"{exercise.id} asks for no prediction: `learn.py start {exercise.id}` shows it")
    for text in args.answers:
        name, _, value = text.partition("=")
        if name not in exercise.answers:
            raise program.UsageError(f"{exercise.id} asks for {', '.join(exercise.answers)}, not for {name!r}")
        answers[name] = value if "of" in exercise.answers[name] else _value(text, value)
    submission.answer(exercise, answers)
    return _check(exercise)


def _value(answer: str, text: str) -> Any:
    """2..4 is a range, 3 a number. Raises UsageError."""
    try:
        numbers = [float(end) for end in text.split("..")]
    except ValueError:
        numbers = []
    if (read := ends(numbers * 2 if len(numbers) == 1 else numbers)) is None:
        raise program.UsageError(f"{answer}: no range of positive numbers, such as 3..4")
    return read if len(numbers) == 2 else read[0]


def show_progress(args: argparse.Namespace) -> int:
    """the course at a glance, and how sure your predictions were"""
    from common.cli import learn_text

    course = exercises()
    learn_text.print_progress(course, standings(course), learner_log.predictions())
    return 0


def export(args: argparse.Namespace) -> int:
    """write all that is stored of you, as it is shown"""
    if args.file.resolve() == (learner_log.WORK / learner_log.FILE).resolve():
        raise program.UsageError(f"{args.file} is what is stored: name another file")
    text = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in learner_log.events())
    is_file = is_replaceable(args.file) and args.file.exists()
    if is_file and not text.encode().startswith(args.file.read_bytes()):  # what is stored is only ever added to
        raise program.UsageError(f"{args.file} is there and no earlier export: name another file")
    write_text(args.file, text)
    if descriptor_of(args.file) != 1:
        sys.stdout.write(text)
    print(f"written to {args.file}; nothing was sent anywhere", file=sys.stderr)
    return PASSED if text else CANNOT


def new(args: argparse.Namespace) -> int:
    """for authors: write an exercise to begin with"""
    from common.cli.skeletons import new_exercise

    return new_exercise(args.id[0])


COMMANDS: tuple[tuple[str, Callable[[argparse.Namespace], int], str | int | None], ...] = (
    ("list", list_all, None), ("next", start_next, None), ("start", start, "?"), ("check", check, "?"),
    ("watch", watch, "?"), ("hint", hint, "?"), ("reset", reset, "?"), ("solution", solution, "?"),
    ("predict", predict, 1), ("progress", show_progress, None), ("export", export, None), ("new", new, 1),
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

    for name, function, id_count in COMMANDS:
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(run=function)
        if id_count is not None:
            default = " (default: the one at hand)" * (id_count == "?")
            command.add_argument("id", nargs=id_count, metavar="ID", help=f"such as ch1/coalesce{default}")
        if function is predict:
            command.add_argument("answers", nargs="+", metavar="NAME=VALUE", help="softmax=3..4, or a number or a word")
        if function is export:
            command.add_argument("file", type=Path)
    return parser.parse_args(argv)
