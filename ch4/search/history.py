"""All trials of a search and their outcomes: a file of JSON lines, written anew after each generation.

The first line says what is searched; the others are trials, remarks (why a proposal was refused) and A/A controls (how
far the default was from itself). An interrupted search continues from here: what has a line is not measured again.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from common.record.files import RecordError, check_writable, is_replaceable, write_text
from search.space import Configuration, name_of

SCHEMA = 1
MEASURED, NO_COMPILE, NO_ROOM = "measured", "does not compile", "out of resources"  # outcomes, besides a few more


@dataclass(frozen=True)
class Trial:
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
    predicted: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        return name_of(self.configuration)


@dataclass
class History:
    """`about`: the first line. `text`: all of them. `path` None: kept in memory alone."""

    about: dict[str, Any]
    path: Path | None = None
    trials: list[Trial] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    controls: list[dict[str, float]] = field(default_factory=list)  # of each generation: default / default again
    final: dict[str, Any] = field(default_factory=dict)
    text: str = ""

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

    def add(self, trials: Iterable[Trial], control: dict[str, float] | None = None) -> None:
        """Write the outcome of a generation, at once. Raises RecordError, as the next two do."""
        lines = [{"kind": "trial", **asdict(trial)} for trial in trials]
        self._keep(lines + ([{"kind": "repeat", **control}] if control else []))

    def remark(self, text: str) -> None:
        self._keep([{"kind": "remark", "text": text}])

    def conclude(self, final: dict[str, Any]) -> None:
        self._keep([{"kind": "final", **final}])

    def _keep(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self.take(**line)
        if self.path:
            self.text += "".join(json.dumps(line) + "\n" for line in lines)
            write_text(self.path, self.text)

    def take(self, kind: str, **line: Any) -> None:
        """Add what one line says. Raises ValueError, TypeError, KeyError if the line is not valid."""
        if kind == "trial":
            self.trials.append(Trial(**line))
        elif kind == "remark":
            self.remarks.append(line["text"])
        elif kind == "repeat":
            self.controls.append(line)
        elif kind == "final":
            self.final = line
        else:
            raise ValueError(f"a line of kind {kind!r}")


def opened(path: Path, about: dict[str, Any]) -> History:
    """The history at `path` to continue, or a new one. Raises RecordError, also if it is of another search."""
    check_writable(path)
    if not is_replaceable(path):
        raise RecordError(f"{path}: cannot hold a history (it is no regular file: a search reads it back)")
    if not path.exists():
        history = History(about, path, text=json.dumps({"kind": "search", **about}) + "\n")
        write_text(path, history.text)
        return history
    history = read(path)
    for key in about:
        if history.about.get(key) != about[key]:
            raise RecordError(f"{path}: of another search: its {key} is {history.about.get(key)}, not {about[key]}")
    return history


def read(path: Path) -> History:
    """Raises RecordError. A last line that was cut off is left out."""
    try:
        text = path.read_text(encoding="utf-8")
        text = text[: text.rfind("\n") + 1]
        first, *lines = [json.loads(line) for line in text.splitlines()] or [{}]
        if first.pop("kind", "") != "search" or first.get("schema") != SCHEMA:
            raise ValueError("its first line does not say so")
        history = History(first, path, text=text)
        for line in lines:
            history.take(**line)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordError(f"{path}: not the history of a search ({error})") from None
    return history
