"""All trials of a search and their outcomes: a file of JSON lines, written anew after each generation.

The first line says what is searched; the others are trials, remarks (why a proposal was refused), A/A controls (how far
the default was from itself) and what the best were when measured again. An interrupted search continues from here: what
has a line is not measured again.
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from common.record.files import RecordError, check_writable, file_errors, is_replaceable, write_text
from common.stats import Estimate
from common.xray.occupancy import Machine
from search.space import Configuration, Problem, name_of

MEASURED, NO_COMPILE, NO_ROOM = "measured", "does not compile", "out of resources"  # outcomes, besides a few more


class Line(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What one line says; its class is its `kind`."""


class About(Line, frozen=True, tag="search"):
    """What is searched, on what, and how: another search's history is not continued."""

    searched: Literal["time", "proxy"]
    problem: Problem
    machine: Machine
    default: Configuration
    proposer: str
    seed: int
    versions: dict[str, str] = {}
    schema: Literal[1] = 1


class Trial(Line, frozen=True, tag="trial", dict=True):
    """A configuration and its outcome: `measured`, or what went wrong, with the reason.

    score: times as fast as the default (as a proxy: the share of the peak); low, high: its 95 % interval.
    predicted, found: registers of a thread, bytes of shared memory of a block; `found` may have more.
    """

    configuration: Configuration
    generation: int
    outcome: str
    reason: str = ""
    score: float = 0.0
    low: float = 0.0
    high: float = 0.0
    seconds: float = 0.0
    predicted: dict[str, Any] = {}
    found: dict[str, Any] = {}

    @cached_property
    def name(self) -> str:
        return name_of(self.configuration)


class Remark(Line, frozen=True, tag="remark"):
    text: str


class Repeat(Line, frozen=True, tag="repeat"):
    """The A/A control of a generation: time of the default / time of the default again, with its 95 % interval."""

    ratio: float
    low: float
    high: float


class Final(Line, frozen=True, tag="final"):
    """The best of the finalists, measured again. seconds: its median, the default's and torch's."""

    configuration: Configuration
    over_default: Estimate
    repeat: Estimate
    verdict: str
    reason: str
    seconds: dict[str, float]
    over_torch: Estimate | None = None


Kind = TypeVar("Kind", bound=Line)
LINES: msgspec.json.Decoder[Line] = msgspec.json.Decoder(About | Trial | Remark | Repeat | Final)


@dataclass
class History:
    """`path` None: kept in memory alone; `about` None: and without a report."""

    about: About | None
    lines: list[Line] = field(default_factory=list)  # after the first
    path: Path | None = None

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [line for line in self.lines if isinstance(line, kind)]

    @property
    def trials(self) -> list[Trial]:
        return self.of(Trial)

    @property
    def measured(self) -> list[Trial]:
        """The best first."""
        return sorted((trial for trial in self.trials if trial.outcome == MEASURED), key=lambda trial: -trial.score)

    @property
    def failures(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.outcome != MEASURED]

    @property
    def names(self) -> set[str]:
        return {trial.name for trial in self.trials}

    @property
    def generations(self) -> int:
        return max((trial.generation for trial in self.trials), default=-1) + 1

    @property
    def final(self) -> Final | None:
        """The last measurement of the best."""
        return next(iter(self.of(Final)[::-1]), None)

    def add(self, *lines: Line) -> None:
        """Keep lines, and write all of them at once. Raises RecordError."""
        self.lines += lines
        if self.path:
            write_text(self.path, msgspec.json.Encoder().encode_lines([self.about, *self.lines]).decode())


def opened(path: Path, about: About) -> History:
    """The history at `path` to continue, or a new one. Raises RecordError, also if it is of another search."""
    check_writable(path)
    if not is_replaceable(path):
        raise RecordError(f"{path}: cannot hold a history (it is no regular file: a search reads it back)")
    if not path.exists():
        history = History(about, path=path)
        history.add()
        return history
    history = read(path)
    for key in About.__struct_fields__:
        if (there := getattr(history.about, key)) != (here := getattr(about, key)):
            raise RecordError(f"{path}: of another search: its {key} is {there}, not {here}")
    return history


def read(path: Path) -> History:
    """Raises RecordError. A last line that was cut off is left out."""
    with file_errors(path, "read"):
        text = path.read_bytes()
    try:
        first, *lines = LINES.decode_lines(text[: text.rfind(b"\n") + 1]) or [None]
    except msgspec.MsgspecError as error:
        raise RecordError(f"{path}: not the history of a search ({error})") from None
    if not isinstance(first, About):
        raise RecordError(f"{path}: not the history of a search (its first line does not say so)")
    return History(first, lines, path)
