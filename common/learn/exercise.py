"""An exercise, as its folder has it: exercise.toml, start.py, solution.py, alternatives/*.py."""

import hashlib
import re
import sys
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta, Struct, ValidationError, convert

from common.pairs.pair import ROOT
from common.pairs.user_error import UserError, suggestions

EXERCISES = ROOT / "exercises"
WORK = ROOT / "work"
NOTEBOOKS = ROOT / "notebooks"
KERNELS = ("repair", "write")
KINDS = ("predict", "count", "diagnose", "referee", *KERNELS)
# The names of gates: of a kernel, of a judge of benchmarks. Other answers' gates have the answers' names
KERNEL_RESULTS = {"right", "traffic", "code", "sent", "host", "operations", "memory", "speed"}
REFEREE_RESULTS = {"referee", "mutant", "honest"}
HINTS = 3
SLOWER = 1.2  # the most times the solution's time that a kernel may take on a GPU, unless its gate `speed` says more
READERS = 1.9  # times the author's minutes: in chapters 0, 1 and 3 readers took 12 hours for 6.4
MODULES = {"common", "cupy", "numpy", "torch", "triton", *sys.stdlib_module_names}
Number = int | float  # a gate of 1 stays 1 in a message
READ = re.compile(r"(section \d+|sections \d+ to \d+)( of ch\d\w?)?|pair \w+( \w+)*")
PROFILE = "profile.json.gz"  # beside the start: what a reader of `diagnose` is given
GIVEN, WORDING = ("given*.py", "cases/*.py", PROFILE), ("text", "why")  # files beside the start; a table's texts


class ExerciseError(UserError):
    """An exercise that does not exist, or whose files are not what they should be."""


class Gates(TypedDict, total=False):
    """What a kernel must keep; exercises/README.md says what each asks for."""

    sectors: Number
    launches: Number
    least_launches: Number
    programs: Number
    atomics: Number
    counted_at: list[str]
    l2: Number
    l2_kib: Number
    sms: Number
    spills: Number
    spills_at: dict[str, Number]
    load_bits: Number
    narrow: dict[str, int]
    speed: Number
    limit: Number
    collectives: Number
    sends: Number
    link: Number
    waits: Number
    copies: Number
    operations: dict[str, int]
    unused: Number
    peak: Number


class Mistake(Struct, frozen=True, forbid_unknown_fields=True):
    """A wrong answer, as (find, replace) edits of the file `of`. Tests judge it; nothing else reads it.

    `says`: the gate at which it fails, and a pattern of what is said there.
    """

    says: Annotated[str, Meta(pattern=r"^\w+: .")]
    edits: Annotated[list[tuple[str, str]], Meta(min_length=1)]
    of: str = "solution"  # or "start", or an alternative's name


class Asked(Struct, frozen=True, forbid_unknown_fields=True, rename={"is_": "is"}):
    """The form of an answer's table; exercises/README.md says what each kind of exercise has."""

    text: str = ""
    of: tuple[str, ...] = ()
    is_: str | Number = 0
    within: Number = 1
    figure: str = ""
    widest: Number = 1
    says: dict[str, str] = {}
    why: str = ""
    number: str = ""
    run: str = ""


@dataclass(frozen=True)
class Exercise:
    """`id`: `ch1/coalesce`. `gates`: what a kernel must keep, by gate. `answers`: of other kinds, what is asked.

    `minutes`: the author's. `wrong`: wrong answers by name. `order`: within the chapter. `read`: what to read first,
    `sections 1 to 4`, `section 8 of ch0`, `pair softmax registers`; of this chapter unless another is named.
    """

    id: str
    folder: Path
    title: str
    kind: str
    pair: str
    objective: str
    spec: str
    hints: tuple[str, ...]
    minutes: int
    order: int
    read: tuple[str, ...] = ()
    gates: Gates = field(default_factory=Gates)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    wrong: dict[str, Mistake] = field(default_factory=dict)

    @property
    def start(self) -> Path:
        return self.folder / "start.py"

    @property
    def solution(self) -> Path:
        return self.folder / "solution.py"

    def changed_file(self, mistake: Mistake) -> Path:
        """What a wrong answer is made of."""
        return self.folder / ("" if mistake.of in ("start", "solution") else "alternatives") / f"{mistake.of}.py"

    @property
    def work(self) -> Path:
        """The reader's own file."""
        return WORK / f"{self.id}.py"

    @property
    def profile(self) -> Path | None:
        """What was recorded of an unknown program, if this is what the exercise is about."""
        path = self.folder / PROFILE
        return path if path.is_file() else None

    @property
    def chapter(self) -> str:
        return self.id.split("/")[0]

    @property
    def reader_minutes(self) -> int:
        return 5 * round(READERS * self.minutes / 5)

    @property
    def read_first(self) -> str:
        """A line that names what to read, with the chapter whose notebook it is in; empty if nothing is named."""
        return f"Read first, in {self.chapter}: {'; '.join(self.read)}." if self.read else ""

    @property
    def slower(self) -> Number:
        """The most times the solution's time that a kernel may take."""
        return self.gates.get("speed", SLOWER)

    @property
    def speed_asked(self) -> str:
        """A sentence that names the limit of the speed, which no specification names; empty if no kernel is asked."""
        asked = f"On a GPU your kernel may take at most {self.slower:g} times as long as the course's solution."
        return asked if self.kind in KERNELS else ""

    @property
    def questions(self) -> list[str]:
        """What is asked, where the answers are no kernel: a line for each."""
        choices = {name: f" One of: {', '.join(table['of'])}." for name, table in self.answers.items() if "of" in table}
        return [f"{name}: {table.get('text', '')}{choices.get(name, '')}" for name, table in self.answers.items()]

    @cached_property
    def hash(self) -> str:
        """Of all that decides what passes: an exercise that changes is open again. Another wording changes nothing."""
        decisive = [self.start, self.solution, *(path for of in GIVEN for path in sorted(self.folder.glob(of)))]
        answers = [(name, key, table[key]) for name, table in self.answers.items() for key in table.keys() - WORDING]
        numbers = repr((self.kind, sorted(self.gates.items()), sorted(answers, key=repr))).encode()
        return hashlib.sha256(b"\0".join([numbers, *(path.read_bytes() for path in decisive)])).hexdigest()[:16]


def exercises(folder: Path | None = None) -> list[Exercise]:
    """All of them, in the order of the course. Raises ExerciseError."""
    paths = (folder or EXERCISES).glob("ch[0-9]*/*/exercise.toml")
    return sorted(map(read, paths), key=lambda exercise: (int(exercise.chapter[2:]), exercise.order, exercise.id))


def find(name: str, folder: Path | None = None) -> Exercise:
    """By its id, or by what follows the chapter if only one is called so. Raises ExerciseError."""
    path = (folder or EXERCISES) / name / "exercise.toml"
    if "/" in name and path.is_file():  # a fault in another exercise does not stop this one
        return read(path)
    candidates = exercises(folder)
    matches = [exercise for exercise in candidates if name in (exercise.id, exercise.id.split("/")[1])]
    if name.endswith(".py"):
        raise ExerciseError(f"{name} is a file; name an exercise (ch0/row_max): its file is work/ch0/row_max.py")
    if len(matches) != 1:
        if asked_in := [path for path in sorted(NOTEBOOKS.glob("*.ipynb")) if _asks(path, name)]:
            raise ExerciseError(f"{name} is asked in a notebook, and answered there: notebooks/{asked_in[0].name}")
        ids = [exercise.id for exercise in candidates]
        is_chapter = name.lower().rstrip("/") in {exercise.chapter for exercise in candidates}
        word = name if is_chapter else name.split("/")[-1]
        raise ExerciseError(f"no exercise is called {name!r}: {suggestions(word, ids, 'learn.py list')}")
    return matches[0]


def _asks(notebook: Path, name: str) -> bool:
    """Whether a cell asks for the prediction of this name. In a notebook's JSON quotes are escaped."""
    return f'predict(\\"{name}\\"' in notebook.read_text(encoding="utf-8")


def read(path: Path) -> Exercise:
    """Raises ExerciseError."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        data |= {key: " ".join(data[key].split()) for key in ("title", "objective")}
        hints = tuple(" ".join(hint.split()) for hint in data["hints"])
        wrong = {name: _converted(table, Mistake, f"wrong.{name}") for name, table in data.get("wrong", {}).items()}
        for name, table in data.get("answers", {}).items():
            _converted(table, Asked, f"answers.{name}")
        data |= {"hints": hints, "wrong": wrong}
        made = Exercise(f"{path.parent.parent.name}/{path.parent.name}", path.parent, **data)
        if unknown := made.gates.keys() - Gates.__annotations__.keys():
            raise ValueError(
                f"gates: {', '.join(sorted(unknown))}: must be of {', '.join(sorted(Gates.__annotations__))}"
            )
        made = convert(vars(made), Exercise)  # raises where a value has another type
    except KeyError as error:
        raise ExerciseError(f"{path}: lacks {error}") from None
    except (ValueError, TypeError, AttributeError) as error:  # TOML, text that is not UTF-8, keys and types
        text = str(error).removeprefix("Exercise.__init__() ")
        raise ExerciseError(f"{path}: {text}") from None
    _check(made)
    return made


def _converted(table: Any, form: Any, where: str) -> Any:
    """Raises ValueError."""
    try:
        return convert(table, form)
    except ValidationError as error:
        raise ValueError(f"{where}: {error}") from None


def hides(name: str) -> str:
    """Why no exercise may be called so: a script finds the files of its own folder first. Empty if it may."""
    folder, _, module = name.rpartition("/")
    if module not in MODULES:
        return ""
    return f"the module `{module}` would be hidden by work/{folder}/{module}.py, from all scripts there: name it anew"


def _check(made: Exercise) -> None:
    def require(holds: bool, problem: str) -> None:
        if not holds:
            raise ExerciseError(f"{made.folder / 'exercise.toml'}: {problem}")

    require(not hides(made.id), hides(made.id))
    unread = [what for what in made.read if not READ.fullmatch(what)]
    require(not unread, f"read: {unread[:1]}: write 'section 4', 'section 8 of ch0' or 'pair softmax'")
    require(made.kind in KINDS, f"kind must be one of {', '.join(KINDS)}")
    require(len(made.hints) == HINTS, f"has {len(made.hints)} hints, not {HINTS}")
    require(made.kind in KERNELS or not made.gates, "only kernels have gates: others have answers")
    judged = made.answers if made.kind in ("predict", "diagnose") else {}
    blank = [name for name, table in judged.items() if not {"is", "figure"} & table.keys()]
    require(not blank, f"answers.{', '.join(blank)}: lacks what is right: `is`, or `figure`")
    for file in (made.start, made.solution):
        require(file.is_file(), f"lacks {file.name} beside it")
    baseline = f"{made.chapter}/baseline_{made.pair}.py"
    require(not made.pair or (ROOT / baseline).is_file(), f"pair: there is no {baseline}")
    of_answers = REFEREE_RESULTS if made.kind == "referee" else {*made.answers, made.kind}
    results = KERNEL_RESULTS if made.kind in KERNELS else of_answers
    for name, mistake in made.wrong.items():
        require(made.changed_file(mistake).is_file(), f"wrong.{name}: there is no {mistake.of!r} to change")
        gate = mistake.says.partition(":")[0]
        require(gate in results, f"wrong.{name}: says {gate!r}: its gates are {', '.join(sorted(results))}")
