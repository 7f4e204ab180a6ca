"""Exercises in a notebook: what one asks, and a grade for the reader's file or cell, with a picture of its traffic."""

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from IPython.core.getipython import get_ipython
from IPython.display import Markdown, display
from numpy.typing import NDArray

from common.checks import interpreter_watch
from common.checks.kernel_memory import BadAccess, watched
from common.checks.poisoned_memory import filled_memory
from common.isolation import worker
from common.isolation.pipe import Report
from common.learn import diagnosis, learner_log, submission
from common.learn.device_gates import WANTED
from common.learn.exercise import KERNELS, Exercise, find
from common.learn.gate import Gate, Grade, end_text
from common.learn.grade import grade
from common.learn.kernel_gates import as_pair
from common.notebook.places import NOT_TOUCHED, lanes_to_sectors, programs_to_tiles, sectors_of, tile_map
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair, discover, load
from common.record import profile_file
from common.record.files import RecordError
from common.show.timeline_text import profile_text
from common.traffic.data import SECTOR
from common.xray.occupancy import WARP

MARKS = {True: "passed", False: "not yet", None: "not judged"}
TERMINAL = "In a terminal: `python learn.py start`, `check`, `hint`."
COLUMNS = 96  # of a profile's text
VIEWER = "[Perfetto](https://ui.perfetto.dev)"
Drawn = NDArray[Any] | None


def show(name: str) -> Markdown:
    """What an exercise asks, the code that it starts from, and how to have it graded."""
    exercise = find(name)
    path, questions = submission.course_path, [f"- {text.removesuffix(': ')}" for text in exercise.questions]
    what = f"({exercise.kind}, about {exercise.reader_minutes} minutes). {exercise.objective} {exercise.read_first}"
    here = f"**To work here**, run `nb.learn.edit({name!r})`: a cell below gets this start. Change it, and run it."
    own = f"Run `nb.learn.check({name!r})` alone in a cell: it makes your file `{path(exercise.work)}`, and grades it"
    parts = [f"**Exercise {name}: {exercise.title}** {what}", exercise.spec.strip()]
    if exercise.profile:
        text = profile_text(profile_file.load(exercise.profile), COLUMNS)
        parts += [f"```text\n{text}```", f"[The whole of it](../{path(exercise.profile)}) opens in {VIEWER}."]
    parts += filter(None, ["\n".join(questions), exercise.speed_asked])
    parts += [f"[The start](../{path(exercise.start)}):", f"```python\n{_start_text(exercise)}\n```", here]
    parts += ["<details><summary>In an editor or a terminal</summary>", f"{own} from then on.", TERMINAL, "</details>"]
    return Markdown("\n\n".join(parts))


def edit(name: str) -> None:
    """Puts an exercise's start into a new cell below, with the line that has it graded."""
    if shell := get_ipython():
        shell.set_next_input(f"{_start_text(find(name))}\n\n\nnb.learn.check({name!r})")


def _start_text(exercise: Exercise) -> str:
    """Without what is imported from files beside it, which a notebook has not; the grader has it."""
    lines = exercise.start.read_text(encoding="utf-8").strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("from given", "import given")))


def check(name: str) -> None:
    """Grades the functions or answers of the cell that runs; if it has none, the reader's file, made where it lacks."""
    exercise = find(name)
    shell = get_ipython()  # None outside a notebook
    path = submission.from_cell(exercise, shell.user_ns["In"][-1] if shell else "") or exercise.work
    if not path.exists():
        submission.begin(exercise)
        print(f"{submission.course_path(path)} is yours: change it, and run this cell again")
        return
    is_cell = path != exercise.work
    print(f"{exercise.id}: grading {submission.course_path(path)}{' (this cell)' * is_cell}", flush=True)
    result = grade(exercise, path, _say)
    late = ""
    try:
        submission.note(result)
        late = learner_log.standings([exercise])[exercise.id].late
    except RecordError as error:
        print(f"this grade is not kept: {error}")
    end = end_text(result, late)
    print(f"{exercise.id}: {end.replace('the file', 'the cell') if is_cell else end}")
    _draw(result)


def run_start(name: str, order: str = "", races: bool = False) -> str:
    """Of an exercise's start in Triton's interpreter: the first number of its answer, or with `races` a race.

    At the first check size; uninitialized memory holds NaN. `order`: of programs, "", "reversed" or "shuffled".
    """
    if not find_spec("triton"):
        return "not run here: Triton exists for Linux only"
    exercise = find(name)
    return str(_interpret(_run_start, exercise, exercise.start, order, races))


def _run_start(pair: Pair, size: str, order: str, races: bool, report: Report) -> str:
    start = load(pair.variants[0].path)
    interpreter_watch.enforce()
    torch.manual_seed(0)
    inputs = start.inputs(**pair.sizes[size], device="cpu")
    try:
        with filled_memory(), watched(order, races=races):
            return f"{start.run(**inputs).flatten()[0]:.6g}"
    except Exception as error:
        cause: BaseException | None = error
        while cause and not isinstance(cause, BadAccess):
            cause = cause.__cause__  # Triton's interpreter raises its own error from the kernel's
        if not cause:
            raise
        return str(cause)


def _say(gate: Gate) -> None:
    if not gate.is_extra:
        print(f"  {gate.name:8} {MARKS[gate.passed]}: {gate.text}", flush=True)
    elif gate.passed:
        print(f"  bonus    {gate.text}", flush=True)


def _draw(grade: Grade) -> None:
    """Of a kernel: elements of its answer that no program writes, or the sectors of its most wasteful access."""
    if grade.exercise.kind not in KERNELS or WANTED & grade.exercise.gates.keys():  # or operations of torch's
        return
    with suppress(worker.ChildFailed):  # the grade has said why: without all accesses there is no picture
        if any(gate.name == "traffic" for gate in grade.gates):
            if (lanes := _interpret(_worst_access, grade.exercise, grade.file)) is not None:
                size, *addresses = lanes.tolist()
                name = "the access of your kernel that uses least of its sectors"
                display(lanes_to_sectors({name: np.array(addresses, np.uint64)}, size))
        elif (drawn := _interpret(_writers, grade.exercise, grade.file)) is not None and (drawn == NOT_TOUCHED).any():
            display(programs_to_tiles({"your answer: white elements are never written": drawn}))


def _interpret(function: Any, exercise: Exercise, path: Path, *more: Any) -> Any:
    """What a function finds of the file at the first check size, in a process of its own with Triton's interpreter."""
    with as_pair(exercise, path) as folder:
        (pair,) = discover(folder)
        return worker.call(function, pair, pair.check_sizes[0], *more, environment=INTERPRETED, deadline_s=60.0)


def _writers(pair: Pair, size: str, report: Report) -> Drawn:
    """Which program writes each element of the answer; None if none stores to it."""
    _, answers, trace = diagnosis.run_traced(pair, size)
    answer, _ = answers[0]
    try:
        return tile_map(trace.accesses, answer, columns=0 if answer.dim() > 1 else min(64, answer.numel()))
    except ValueError:
        return None


def _worst_access(pair: Pair, size: str, report: Report) -> Drawn:
    """A warp of the load or store that uses the smallest share of its sectors: bytes of an element, then addresses."""
    _, _, trace = diagnosis.run_traced(pair, size)
    warps = [(access.size, access.addresses[access.mask].reshape(-1)[:WARP]) for access in trace.accesses]
    if not (warps := [(size, lanes) for size, lanes in warps if len(lanes) == WARP]):
        return None
    bytes_, lanes = min(warps, key=lambda warp: _used_share(*warp))
    return np.array([bytes_, *(lanes - lanes.min() // SECTOR * SECTOR).tolist()])


def _used_share(size: int, lanes: NDArray[np.uint64]) -> float:
    touched = sectors_of(lanes, size)
    return sum(map(len, touched.values())) / len(touched)
