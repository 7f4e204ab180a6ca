"""Record all of this machine that is stale or missing.

A step measures a pair at the sizes of a class, the machine's sheet or the calibration, or grades a solution. Its result
is kept under recorded/ before the next step begins. Started again after a stop, it goes on with what is left. Stale
results come first, then missing ones: default sizes, calibration, exercises, other sizes.

Exit status: 0 nothing is left; 1 something is left; 2 wrong usage, or a device that cannot be used; 130 interrupted.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any

from common.engine import runner
from common.hardware import sheet as sheets
from common.isolation import interrupt, worker
from common.learn.exercise import Exercise, exercises
from common.machine.device import default_device
from common.machine.survey import survey_apart
from common.pairs.pair import Pair, chapters, class_of, discover, sizes_of
from common.pairs.source import source_hash
from common.pairs.user_error import UserError, printable
from common.record import files, store
from common.record.files import Problems
from common.record.outcome import FAILED
from common.record.result import PairResult
from common.show import words
from tools import solutions
from tools.calibration import checks, findings

Recorded = Callable[[str, str], store.Records]  # chapter, class -> files, newest first
LONG_S = 120.0  # a pair whose sizes of a class take longer is measured in parts, so that less is lost by a stop
RECENT = 3  # steps whose times count for a step that was never carried out here


@dataclass(frozen=True)
class Part:
    """What one step measures. `took_s`: what it took on this device the last time, 0 if unknown."""

    sizes: list[str]  # of a pair; empty for what is no pair
    is_stale: bool  # else missing
    took_s: float = 0.0


@dataclass(frozen=True)
class Step:
    """`do` returns why it is still left, or an empty text."""

    what: str
    part: Part
    do: Callable[[], str]

    @property
    def kind(self) -> str:
        return "pair" if self.part.sizes else self.what.split()[0]

    def expected_s(self, recent: list[float]) -> float:
        """What it took the last time; else the longest of the last steps of its kind."""
        return self.part.took_s or max(recent[-RECENT:], default=0.0)

    def line(self, recent: list[float]) -> str:
        about = f", about {expected} s" if (expected := round(self.expected_s(recent))) else ""
        return f"{self.what} ({'stale' if self.part.is_stale else 'missing'}{about})"


def pair_parts(pair: Pair, of_class: str, info: dict[str, Any], recorded: Recorded) -> list[Part]:
    """The sizes of a class that are stale or missing, if the pair can be timed here in this class; see LONG_S.

    A size is stale, too, if the pair has got a variant since.
    """
    sizes = sizes_of(pair, of_class, info["kind"] == "cpu")
    if not any(runner.can_time(pair, size, info) for size in sizes):
        return []
    records, is_current = recorded(pair.chapter, of_class), store.current_filter([pair])
    here = _newest(pair, records, info["name"])
    is_timed = any(here[size].arms for size in sizes if size in here)
    parts: list[Part] = []
    current_sizes = {size for size in here if is_current(here[size]) and not store.added_variants(pair, here[size])}
    for size in [size for size in sizes if not (is_timed and size in current_sizes)]:
        took_s = here[size].spent_s.get("total", 0.0) if size in here else 0.0
        part = Part([size], size in here and size not in current_sizes, took_s)
        if parts and parts[-1].took_s + took_s <= LONG_S:
            last = parts.pop()
            part = Part([*last.sizes, size], last.is_stale or part.is_stale, last.took_s + took_s)
        parts.append(part)
    return parts


def _newest(pair: Pair, dated: store.Records, device: str) -> dict[str, PairResult]:
    """A pair's newest results of this device, by size."""
    records = [record for _, record in dated if record.environment["device"]["name"] == device]
    results = [result for record in reversed(records) for result in record.pairs if result.name == pair.name]
    return {result.size: result for result in sorted(results, key=lambda result: bool(result.arms))}  # timed ones last


def _of_device(info: dict[str, Any], form: files.Format, name: str, problems: Problems) -> list[Any]:
    """The content of this device's files of a name, newest first."""
    contents = [content for _, content in form.load_all(name, problems=problems)]
    return [content for content in contents if content.environment["device"]["name"] == info["name"]]


def sheet_parts(info: dict[str, Any], problems: Problems) -> list[Part]:
    """One part if the machine's sheet is missing, or stale: measured with fewer GPUs it lacks links between them."""
    recorded = _of_device(info, sheets.FORMAT, sheets.FILE, problems)
    gpus = [sheet.environment["device"]["gpus"] for sheet in recorded]
    return [] if gpus and max(gpus) >= info["gpus"] else [Part([], bool(gpus))]


def calibration_parts(info: dict[str, Any], problems: Problems) -> list[Part]:
    """One part if the calibration is missing, or stale: its pairs have changed since."""
    recorded = _of_device(info, checks.FORMAT, findings.FILE, problems)
    hashes = {pair.name: source_hash(pair) for pair in discover(findings.PAIRS)}
    if not recorded:
        return [Part([], False)]
    newest = recorded[0]
    return [] if newest.source_hashes == hashes else [Part([], True, newest.environment["took_s"])]


def exercise_parts(info: dict[str, Any], problems: Problems) -> list[tuple[Exercise, Part]]:
    """The exercises whose solutions were not graded here as they are now, or did not pass."""
    recorded = _of_device(info, solutions.FORMAT, solutions.FILE, problems)
    newest = {solution.id: solution for file in reversed(recorded) for solution in file.solutions}
    open_exercises = []
    for exercise in exercises():
        grade = newest.get(exercise.id)
        if grade is None or grade.hash != exercise.hash or grade.status not in solutions.DONE:
            open_exercises.append((exercise, Part([], grade is not None, grade.took_s if grade else 0.0)))
    return open_exercises


def record_pair(pair: Pair, sizes: list[str], device: str) -> str:
    """Measure a pair at some sizes and keep the result. Returns why it is not kept, or an empty text.

    Raises UserError, and KeyboardInterrupt after the sizes that were measured are kept.
    """
    from common.show import console  # imports rich

    with console.measurement_progress(len(sizes)) as (tell, warn):
        record = runner.run_pairs([pair], ",".join(sizes), device, on_progress=tell, on_neighbours=warn)
    is_current = store.current_filter([pair])
    failed = {result.size: row for result in record.pairs for row in result.rows if row.verdict in FAILED}
    results = [result for result in record.pairs if result.size not in failed and is_current(result)]
    if any(result.arms for result in results):
        paths = store.keep_record(replace(record, pairs=results))
        print("\n".join(f"recorded in {path}" for path in paths), flush=True)
    elif not failed and results:  # as where nothing fits in this device's memory
        print(f"nothing could be timed: {words.text(results[0].rows[0].reason)}", flush=True)
    if record.environment["interrupted"]:
        raise KeyboardInterrupt
    causes = {size: f"{words.word(row.verdict)}: {words.text(row.reason)}" for size, row in failed.items()}
    reasons = [f"{size}: {row.variant} {causes[size]}" for size, row in failed.items()]
    reasons += [f"{result.size}: the pair has changed since" for result in record.pairs if not is_current(result)]
    return "; ".join(reasons)


def record_sheet(device: str) -> str:
    """Measure the machine's sheet and keep it. Raises UserError."""
    sheet = sheets.measure_in_child(device, lambda stage, fraction: print(f"measuring: {stage}", file=sys.stderr))
    print(f"recorded in {sheets.keep(sheet)}", flush=True)
    return ""


def record_solution(exercise: Exercise, info: dict[str, Any]) -> str:
    """Grade a solution and keep what its gates say. Returns why it did not pass, or an empty text. Raises UserError."""
    (grade,) = solutions.record([exercise], info)
    return "" if grade.status in solutions.DONE else grade.line


def record_calibration(device: str) -> str:
    """Calibrate and keep the result, whichever checks it passed. Raises UserError, KeyboardInterrupt."""
    from common.show.console import make_console
    from tools.calibration import calibrate  # imports rich, as the other

    calibration = calibrate.measure(device)
    path = findings.keep(calibration)
    calibrate.print_findings(calibration, make_console())
    print(f"recorded in {path}", flush=True)
    return ""


def plan(device: str, info: dict[str, Any], only_default: bool, problems: Problems) -> list[Step]:
    """All steps in their order. Files that cannot be read are noted in `problems`. Raises UserError."""
    pairs = [pair for path in chapters().values() for pair in discover(path)]
    classes = dict.fromkeys(class_of(size) for pair in pairs for size in pair.timed_sizes)
    of_class: dict[str, list[Step]] = {name: [] for name in (["default"] if only_default else ["default", *classes])}
    recorded = cache(lambda chapter, name: store.chapter_records(chapter, name, problems=problems))
    for name, pair in ((name, pair) for name in of_class for pair in pairs):
        for part in pair_parts(pair, name, info, recorded):
            more = f" and {len(part.sizes) - 1} more" if len(part.sizes) > 1 else ""
            what = f"{pair.chapter} {pair.name} {part.sizes[0]}{more}"
            of_class[name].append(Step(what, part, partial(record_pair, pair, part.sizes, device)))
    sheet = [Step("hardware", part, partial(record_sheet, device)) for part in sheet_parts(info, problems)]
    parts = calibration_parts(info, problems)
    calibration = [Step("calibration", part, partial(record_calibration, device)) for part in parts]
    of_exercises = [
        Step(f"exercise {exercise.id}", part, partial(record_solution, exercise, info))
        for exercise, part in exercise_parts(info, problems)
        if not only_default and device == default_device()  # on which they are graded
    ]
    steps = [*sheet, *of_class.pop("default"), *calibration, *of_exercises, *chain(*of_class.values())]
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


def run(args: Namespace) -> int:
    """Plan, measure, say what is left. Raises UserError, KeyboardInterrupt."""
    with interrupt.hold_signals():
        status = _record(args)
        return 130 if interrupt.was_interrupted() else status


def _record(args: Namespace) -> int:
    begin, problems, remaining = time.monotonic(), Problems(), list[str]()
    device = args.device or default_device()
    files.check_writable(files.RECORDED / "any", makes_folder=True)
    info, _ = survey_apart(device, not args.dry_run)
    steps = plan(device, info, args.only_default, problems)
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
