"""What a search has tried and what came of it: a file of JSON lines, to which each generation is added when it is done.

The first line says what is searched; the others are trials, remarks (why a proposal was refused) and how far the
default was from itself. A search that was killed goes on from here: whatever has a line is not measured again.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.pairs.contract import OneLine
from common.record.files import check_writable, write_text
from search.space import Configuration, name_of

SCHEMA = 1
MEASURED = "measured"


class HistoryError(OneLine):
    """A file that is not the history asked for; str() says why."""


@dataclass(frozen=True)
class Trial:
    """A configuration and its outcome: `measured`, or what went wrong, with the reason.

    score: times as fast as the default (as a proxy: the share of the peak); low, high: its 95 % interval.
    predicted, found: registers of a thread, bytes of shared memory of a block, and whatever else was found.
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

    @property
    def name(self) -> str:
        return name_of(self.configuration)


@dataclass
class History:
    """`about`: the first line. `path` None: kept in memory alone."""

    about: dict[str, Any]
    path: Path | None = None
    trials: list[Trial] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    repeats: list[dict[str, float]] = field(default_factory=list)  # of each generation: default / default again
    final: dict[str, Any] = field(default_factory=dict)

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

    def add(self, trials: Iterable[Trial], repeat: dict[str, float] | None = None) -> None:
        """A generation's outcome, in one write."""
        new = list(trials)
        lines: list[dict[str, Any]] = [{"kind": "trial", **asdict(trial)} for trial in new]
        if repeat:
            lines.append({"kind": "repeat", **repeat})
            self.repeats.append(repeat)
        self.trials += new
        self._append(lines)

    def remark(self, text: str) -> None:
        self.remarks.append(text)
        self._append([{"kind": "remark", "text": text}])

    def conclude(self, final: dict[str, Any]) -> None:
        self.final = final
        self._append([{"kind": "final", **final}])

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if self.path and lines:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("".join(json.dumps(line) + "\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())


def opened(path: Path, about: dict[str, Any]) -> History:
    """The history at `path` to go on with, or a new one. Raises HistoryError where it is another search's."""
    check_writable(path)
    if not path.exists():
        write_text(path, json.dumps({"kind": "search", **about}) + "\n")
        return History(about, path)
    history = read(path)
    differing = [key for key in about if history.about.get(key) != about[key]]
    if differing:
        key = differing[0]
        raise HistoryError(f"{path}: of another search: its {key} is {history.about.get(key)}, not {about[key]}")
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):  # killed while it wrote
        write_text(path, text[: text.rfind("\n") + 1])
    return history


def read(path: Path) -> History:
    """Raises HistoryError. A last line that was cut off is left out."""
    try:
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        first, *lines = [json.loads(line) for line in whole.splitlines()] or [{}]
        if first.pop("kind", "") != "search" or first.get("schema") != SCHEMA:
            raise ValueError("its first line does not say so")
        history = History(first)
        for line in lines:
            _take(history, line.pop("kind"), line)
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HistoryError(f"{path}: not the history of a search ({error})") from None
    history.path = path
    return history


def _take(history: History, kind: str, line: dict[str, Any]) -> None:
    if kind == "trial":
        history.trials.append(Trial(**line))
    elif kind == "remark":
        history.remarks.append(line["text"])
    elif kind == "repeat":
        history.repeats.append(line)
    elif kind == "final":
        history.final = line
    else:
        raise ValueError(f"a line of kind {kind!r}")
