"""What was said of wrong versions, remembered by a hash of all that decides it."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.record.files import write_text

RESULTS = Path(__file__).with_name("results.json")
Result = dict[str, Any]  # hash; on: "cpu" or "cuda"; caught: bool; message
NO_REASON = "it passes without a reason: reject it, or say why it may pass (exercises/README.md)"
Judgement = tuple[str, bool, str]  # a name, whether it is caught, the message


@dataclass(frozen=True)
class Wrong:
    """A wrong version. `hash`: of it and of what it is judged by. `says`: the gate and a pattern of its message.

    `passes`: why it is known to pass. `on_a_gpu`: why it is known to pass there, though not in Triton's interpreter.
    """

    hash: str
    says: str = ""
    passes: str = ""
    on_a_gpu: str = ""

    def problem(self, result: Result) -> str:
        """Why a result is not what it has to be, or ""."""
        reason = self.passes or self.on_a_gpu * (result["on"] == "cuda")
        if result["caught"] == bool(reason):
            return "a reason is given why it passes, but it is caught" if reason else NO_REASON
        (gate, _, words), (last_gate, _, text) = self.says.partition(": "), result["message"].partition(": ")
        if self.says and (gate != last_gate or not re.search(words, text)):
            return f"it has to get {self.says!r}, and gets {result['message']!r}"
        return ""


@dataclass(frozen=True)
class Group:
    """Wrong versions of one `subject`: a lesson (`ch3 softmax`) or an exercise (`ch3/softmax`).

    `judge`: names and a device -> a judgement of each, but for what cannot run there.
    """

    subject: str
    wrong: dict[str, Wrong]
    judge: Callable[[list[str], str], Iterable[Judgement]]

    def key(self, name: str) -> str:
        return f"{self.subject}: {name}"

    def stale(self, results: dict[str, Result]) -> list[str]:
        """The names of what is not judged, or has changed since."""
        return [name for name, wrong in self.wrong.items() if results.get(self.key(name), {}).get("hash") != wrong.hash]

    def problems(self, results: dict[str, Result]) -> dict[str, str]:
        """By name, of what is judged and not stale."""
        names = self.wrong.keys() - {*self.stale(results)}
        problems = {name: self.wrong[name].problem(results[self.key(name)]) for name in sorted(names)}
        return {name: problem for name, problem in problems.items() if problem}

    def results(self, names: list[str], device: str) -> Iterator[tuple[str, Result]]:
        """Key and result of each, as soon as it is judged."""
        on = device.split(":")[0]
        for name, caught, message in self.judge(names, device):
            yield self.key(name), {"hash": self.wrong[name].hash, "on": on, "caught": caught, "message": message}


def digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def load() -> dict[str, Result]:
    """What is remembered, by key."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def save(results: dict[str, Result]) -> None:
    """A line for each."""
    lines = [f"{json.dumps(key)}: {json.dumps(results[key])}" for key in sorted(results)]
    write_text(RESULTS, "{\n" + ",\n".join(lines) + "\n}\n")
