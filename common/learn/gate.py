"""What a gate says of a file, and what all of them together come to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.learn.exercise import Exercise

PASSED, NOT_YET, CANNOT, UNSURE = range(4)  # the program's exit status
ENDS = {
    PASSED: "passed. `python learn.py solution` compares, `python learn.py next` goes on",
    NOT_YET: "not yet. Change the file and check again; `python learn.py hint` helps",
    CANNOT: "this machine cannot grade it",
    UNSURE: "unsure: the interval lies across the line, or there is none. Check again on a quieter machine",
}
NEEDS_GPU = "speed"  # the only gate that a machine without a GPU need not judge
Say = Callable[["Gate"], None]


@dataclass(frozen=True)
class Gate:
    """What one gate says. `passed`: None where it cannot be judged here. `is_extra`: a star, which nobody needs."""

    name: str
    passed: bool | None
    text: str
    is_extra: bool = False
    is_unsure: bool = False  # measured, and an interval lies across the line
    scored: dict[str, Any] | None = None  # of a prediction: its `range`, the figure `found`, and its `interval`


@dataclass(frozen=True)
class Grade:
    exercise: Exercise
    file: Path
    gates: tuple[Gate, ...]

    @property
    def status(self) -> int:
        needed = [gate for gate in self.gates if not gate.is_extra]
        if not needed or needed[0].passed is None:  # without the first gate, the others mean nothing
            return CANNOT
        if any(gate.passed is False for gate in needed):
            return NOT_YET
        if any(gate.is_unsure for gate in needed):
            return UNSURE
        return CANNOT if any(gate.passed is None and gate.name != NEEDS_GPU for gate in needed) else PASSED

    @property
    def star(self) -> bool:
        return self.status == PASSED and any(gate.passed for gate in self.gates if gate.is_extra)


def end_text(grade: Grade, late: str) -> str:
    """The last line. `late`: ` at the second try`, of predictions; the first ranges stay the locked ones."""
    text = ENDS[grade.status]
    if not late or grade.status != PASSED:
        return text
    return text.replace("passed.", f"passed{late}: the first ranges are the ones that count in `progress`.", 1)
