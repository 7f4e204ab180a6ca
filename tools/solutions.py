"""Grade the exercises' own solutions on this machine.

Each must pass all gates that this machine can judge. On a GPU the speed is one of them. `--record` keeps what the gates
say in recorded/<device>/exercises.json, with the hash of each exercise. It then grades only the solutions that are not
recorded there, or whose exercise has changed.

Exit status: 0 all that can be graded here passed; 1 a solution did not pass; 2 wrong usage or a bad file; 130
interrupted: with `--record`, what was graded is kept.
"""

import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.learn.exercise import Exercise, exercises, find
from common.learn.gate import CANNOT, PASSED
from common.learn.grade import grade
from common.machine.device import default_device, versions
from common.machine.survey import survey_apart
from common.record import files

SCHEMA = 1
FILE = "exercises.json"
DONE = PASSED, CANNOT  # another status is graded again
SAID = {True: "passed", False: "failed", None: "not judged"}


@dataclass(frozen=True)
class GradedSolution:
    """A solution. `status`: of `common.learn.gate`. `gates`: name, passed (None: not judged here), text.

    `date`, `versions`: of this one; a file may hold several runs.
    """

    id: str
    hash: str
    status: int
    took_s: float
    date: str
    versions: dict[str, str]
    gates: list[dict[str, Any]]

    @property
    def line(self) -> str:
        results = ", ".join(f"{gate['name']} {SAID[gate['passed']]}" for gate in self.gates)
        shown = [gate["text"] for gate in self.gates if gate["passed"] is False or gate["name"] == "speed"]
        return f"{'; '.join([f'{self.id}: {results}', *shown])} ({self.took_s:.1f} s)"


@dataclass(frozen=True)
class Solutions:
    schema: int
    environment: dict[str, Any]  # device, and the date of the last run
    solutions: list[GradedSolution]


FORMAT = files.Format("solutions", SCHEMA, Solutions)


def load_current(path: Path) -> dict[str, GradedSolution]:
    """What a device's file has of exercises as they are now, by id, if it is DONE. Raises RecordError."""
    hashes = {exercise.id: exercise.hash for exercise in exercises()}
    recorded = FORMAT.load(path).solutions if path.exists() else []
    current = [solution for solution in recorded if hashes.get(solution.id) == solution.hash]
    return {solution.id: solution for solution in current if solution.status in DONE}


def grade_solution(exercise: Exercise) -> GradedSolution:
    """Grade, and print a line."""
    begin, date = time.monotonic(), files.utc_now()
    result = grade(exercise, exercise.solution)
    required = [gate for gate in result.gates if not gate.is_extra]
    gates = [{"name": gate.name, "passed": gate.passed, "text": gate.text} for gate in required]
    took_s = time.monotonic() - begin
    solution = GradedSolution(exercise.id, exercise.hash, result.status, took_s, date, versions(), gates)
    print(solution.line, flush=True)
    return solution


def record(selected: Sequence[Exercise], info: dict[str, Any]) -> list[GradedSolution]:
    """Grade those that are not recorded yet; what is known is written after each. Returns all of `selected`.

    Raises RecordError.
    """
    environment = {"device": info, "date": files.utc_now()}
    path = files.file_of_device(environment, FILE)
    solutions = load_current(path)
    for exercise in [exercise for exercise in selected if exercise.id not in solutions]:
        solutions[exercise.id] = grade_solution(exercise)
        everything = sorted(solutions.values(), key=lambda solution: solution.id)
        files.write_json(path, Solutions(SCHEMA, environment, everything))
    return [solutions[exercise.id] for exercise in selected]


def run(args: Namespace) -> int:
    """Grade. Returns the exit status. Raises UserError."""
    selected = [*{exercise.id: exercise for exercise in map(find, args.id)}.values()] or exercises()
    if args.record:
        solutions = record(selected, survey_apart(default_device(), with_limits=False)[0])
    else:
        solutions = [*map(grade_solution, selected)]
    passed = sum(solution.status == PASSED for solution in solutions)
    cannot = sum(solution.status == CANNOT for solution in solutions)
    print(f"{passed} of {len(solutions)} solutions passed" + (f", {cannot} cannot be graded here" if cannot else ""))
    return 0 if passed + cannot == len(solutions) else 1
