"""What the reader did, in work/progress.jsonl: a line for each event, only ever added.

A line that is torn, or no event, is left out: the file is the reader's, and may hold anything.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert

from common.learn.exercise import WORK, Exercise
from common.learn.forecast_score import misses, number
from common.record.files import RecordError, file_errors, make_folder, utc_now

FILE = "progress.jsonl"
FOUND = {"at", "found", "interval"}  # what an event has of a figure, not of the answer to it
Positive = Annotated[float, Meta(gt=0)]


class Event(Struct):
    """The form of a line; which of the values it has depends on `what`. Others may stand beside them."""

    at: str
    what: str
    of: str
    hash: str | UnsetType | None = UNSET
    status: int | UnsetType = UNSET
    number: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    pair: Annotated[str, Meta(pattern=r"^(\w+/\w+)?$")] | UnsetType = UNSET
    said: float | str | UnsetType = UNSET
    found: float | str | UnsetType = UNSET
    bytes: float | UnsetType | None = UNSET
    range: tuple[Positive, Positive] | UnsetType | None = UNSET
    interval: tuple[Positive, Positive] | UnsetType | None = UNSET


@dataclass(frozen=True)
class Standing:
    """Of one exercise, as it is now: an exercise that has changed since is open again."""

    started: bool = False
    passed: bool = False
    tries: int = 0
    hints: int = 0
    seen: bool = False  # the solution, before it passed
    at_try: int = 0  # of predictions: the most ranges that a question took; a miss prints the figure

    @property
    def late(self) -> str:
        """Of predictions that hold, but not at once."""
        return {0: "", 1: "", 2: " at the second try"}.get(self.at_try, f" at try {self.at_try}")


def add(what: str, of: str, folder: Path | None = None, **values: Any) -> dict[str, Any]:
    """One event, on the disk when this returns: a kill leaves it whole or away. Raises RecordError."""
    path = _store(folder)
    event = {"at": utc_now(), "what": what, "of": of, **values}
    line = json.dumps(event, ensure_ascii=False) + "\n"
    make_folder(path.parent)
    with file_errors(path), path.open("a+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        torn = size and os.pread(file.fileno(), 1, size - 1) != b"\n"  # an earlier line was cut off: close it
        rest = (("\n" if torn else "") + line).encode()
        while rest:  # a full disk takes a part: the next call says why
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    return event


def _store(folder: Path | None) -> Path:
    """Raises RecordError for what is no file: a pipe would be waited for, a device may have no end."""
    path = (folder or WORK) / FILE
    with file_errors(path, "read"):
        if path.parent.is_file() or (path.exists() and not path.is_file()):
            what = f"{path.parent}: is no folder" if path.parent.is_file() else f"{path}: is no file"
            raise RecordError(f"{what}: move it away")
    return path


def events(folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """In their order; lines that are not whole are passed over. Raises RecordError."""
    path = _store(folder)
    with file_errors(path, "read"):
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return
    for line in lines:
        with suppress(ValueError, RecursionError, ValidationError):
            convert(event := json.loads(line), Event)
            yield event


def standings(exercises: Sequence[Exercise], folder: Path | None = None) -> dict[str, Standing]:
    """By the exercise's id."""
    events_of: dict[str, list[dict[str, Any]]] = {exercise.id: [] for exercise in exercises}
    hashes = {exercise.id: exercise.hash for exercise in exercises}
    for event in events(folder):
        if event["of"] in events_of and event.get("hash") == hashes[event["of"]]:
            events_of[event["of"]].append(event)
    ranges, at_try, held = Counter[str](), Counter[str](), set[str]()
    for event in predictions(folder):
        question, name = event["of"], event["of"].partition(" ")[0]
        if event.get("range") and event.get("hash") == hashes.get(name) and question not in held:
            (low, high), figure = event["range"], number(event.get("found"))
            ranges[question] += 1
            at_try[name] = max(at_try[name], ranges[question])
            is_held = figure is not None and figure > 0 and misses(low, high, figure, event.get("interval")) == 1.0
            held |= {question} if is_held else set()
    return {name: _standing(of_one, at_try[name]) for name, of_one in events_of.items()}


def last_exercise(exercises: Sequence[Exercise], folder: Path | None = None) -> Exercise | None:
    """The last that was started or passed, which `next` goes on from; None if there is none."""
    by_id = {exercise.id: exercise for exercise in exercises}
    begun = [event["of"] for event in events(folder) if event["what"] == "start" or event.get("status") == 0]
    return next((by_id[name] for name in reversed(begun) if name in by_id), None)


def next_exercise(exercises: Sequence[Exercise], folder: Path | None = None) -> Exercise:
    """The first after it that is not passed; then those that were skipped. The last one if all are passed."""
    stands, last = standings(exercises, folder), last_exercise(exercises, folder)
    begin = 0 if last is None else [exercise.id for exercise in exercises].index(last.id) + 1
    return next(
        (exercise for exercise in [*exercises[begin:], *exercises[:begin]] if not stands[exercise.id].passed),
        exercises[-1],
    )


def _standing(of_one: list[dict[str, Any]], at_try: int) -> Standing:
    checks = [event for event in of_one if event["what"] == "check"]
    passed = next((place for place, event in enumerate(of_one) if event.get("status") == 0), len(of_one))
    before = {event["what"] for event in of_one[:passed]}
    hints = max((event.get("number", 0) for event in of_one if event["what"] == "hint"), default=0)
    return Standing(bool(of_one), passed < len(of_one), len(checks), hints, "solution" in before, at_try)


def predictions(folder: Path | None = None) -> list[dict[str, Any]]:
    """Every prediction, revisions too: the first of each question, at one state of its pair, is the locked one.

    The same answer again, as of a file that is checked once more, is no revision. A notebook measures later than it
    asks: the first event `found` of a question after a prediction completes it.
    """
    made: list[dict[str, Any]] = []
    last, waiting = dict[Any, dict[str, Any]](), defaultdict[Any, list[dict[str, Any]]](list)
    for event in events(folder):
        key, answer = (event["of"], event.get("hash")), {name: event[name] for name in event.keys() - FOUND}
        if event["what"] == "predict" and answer != last.get(key):
            made.append({**event, "locked": key not in last})
            last[key] = answer
            waiting[key].append(made[-1])
        elif event["what"] == "found":
            for prediction in waiting.pop(key, []):
                prediction |= {**event, **prediction}
    return made
