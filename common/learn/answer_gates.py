"""The gates of answers that are no kernel: numbers and words, counts as functions, a judge of benchmarks.

In exercise.toml a table for each answer, under the name that the reader's file gives it:

    [answers.resource]                   a word: one of `of`; `says`: what a wrong one is told
    of = ["memory", "arithmetic"]
    is = "memory"
    [answers.sectors]                    a number, `within` a factor (1.0: exact); in `count`, a function of the size
    is = 8192
    says.high = "count them once"        what a number is told that is too high, or too low (`says.low`)
    [answers.ratio]                      a range (low, high), at most `widest` apart, that is to hold the figure
    figure = "ch1 coalescing wide: ratio"
    why = "12.5 is more than the sectors"  said with the figure, whether the range holds it or not
    [answers.gain]                       the same of a figure that follows from what is given: `is`, and `widest`
    is = 4.2
    widest = 1.5
    [answers.rows]                       in `count`: the number `number` (default: its name) of the program's `run`
    run = "row_sums"
    number = "sectors"
"""

import ast
import functools
import inspect
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from common.isolation import worker
from common.learn import multi_process
from common.learn.exercise import Exercise
from common.learn.forecast_score import ends, misses, number, off
from common.learn.gate import Gate
from common.learn.submission import names_in
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import load
from common.show.quoted_figures import newest_figure, newest_interval
from common.traffic.call import count

DEADLINE_S = 20.0
MOST_SHOWN = 80  # characters of what is no answer
UNSEEN = "unseen"  # a size of `count` whose counts no message shows
ELSEWHERE = "right at the sizes that are shown, wrong at another: does the count follow from all arguments?"
WIDEST = 4.0  # high / low of a range that says something
CASES = {"mutant": False, "honest": True}


def gates(exercise: Exercise, path: Path) -> Iterator[Gate]:
    """One for each answer. In a process of its own: the file is the reader's."""
    if exercise.kind == "referee":
        yield from _referee(exercise, path)
        return
    judge, stages = {"count": _counts}.get(exercise.kind, _constants), [""]
    hear = lambda stage, _: stages.append(f"{stage}: ")  # noqa: E731
    try:
        results = worker.call(judge, exercise, path, environment=INTERPRETED, on_progress=hear, deadline_s=DEADLINE_S)
    except worker.ChildFailed as death:
        results = [Gate(exercise.kind, False, f"{stages[-1]}{death}")]
    yield from results


Gates = list[Gate]


def _constants(exercise: Exercise, path: Path, parent: worker.ParentPipe) -> Gates:
    """Constants of the file, each against its table."""
    (values, errors), results = _values(path), Gates()
    for name, table in exercise.answers.items():
        value = values.get(name)
        if name in errors:
            results.append(Gate(name, False, f"`{name}`: {errors[name]}"))
        elif value is None:
            results.append(Gate(name, False, f"`{name}` has no answer yet: {table.get('text', 'replace None')}"))
        elif {"figure", "widest"} & table.keys():
            results.append(_range(name, value, table))
        elif isinstance(table["is"], str):
            results.append(Gate(name, *_word(value, table)))
        else:
            results.append(Gate(name, *_number(value, table)))
    return results


def _values(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The constants of a file; of those whose statement raises, what it raises: the others count all the same."""
    values, errors = dict[str, Any](__name__=path.stem), dict[str, str]()
    for node in ast.parse(path.read_bytes(), path.name).body:
        try:
            exec(compile(ast.Module([node], []), path.name, "exec"), values)
        except Exception as error:  # noqa: BLE001 (the file is the reader's)
            errors |= dict.fromkeys(names_in(node), worker.one_line(error))
    return values, errors


def _shown(value: Any) -> str:
    """On one line, which a tensor's is not."""
    return " ".join(repr(value).split())[:MOST_SHOWN]


def _word(value: Any, table: dict[str, Any]) -> tuple[bool, str]:
    word = str.__str__(value) if issubclass(type(value), str) else None  # a class derived from str may equal all words
    if word not in table["of"]:
        return False, f"{_shown(value)} is none of {', '.join(table['of'])}"
    if word == table["is"]:
        return True, f"{word}: right. {table.get('why', '')}".strip()
    return False, f"{word}: no. {table.get('says', {}).get(word, '')}".strip()


def _number(value: Any, table: dict[str, Any]) -> tuple[bool, str]:
    answer, right, within = number(value), table["is"], table.get("within", 1.0)
    if answer is None and ends(value):
        return False, f"{_shown(value)} is a range: a single number is asked for here"
    if answer is None or answer <= 0:
        return False, f"{_shown(value)} is no positive number"
    passed = max(answer / right, right / answer) <= within * (1 + 1e-9)
    wrong = table.get("says", {}).get("high" if answer > right else "low", "")
    why = table.get("why", "") if passed else wrong
    return passed, f"{answer:,.6g}: {off(answer, right, within == 1.0)}" + (f". {why}" if why else "")


def _range(name: str, value: Any, table: dict[str, Any]) -> Gate:
    """A range that says something is scored, and the figure is told whether it holds it or not."""
    widest, why = table.get("widest", WIDEST), f". {table['why']}" if "why" in table else ""
    if (read := ends(value)) is None:
        return Gate(name, False, f"{_shown(value)} is no range: write (low, high)")
    low, high = read
    if high / low > widest * (1 + 1e-9):  # 0.27 / 0.18 is a little more than 1.5
        return Gate(name, False, f"a range of a factor {high / low:.1f} says little: at most {widest:g}")
    if "is" in table:
        return _known_range(name, low, high, table)
    figure = newest_figure(table["figure"])
    recorded = re.match(r"[\d.]+", figure)
    if not recorded:
        return Gate(name, None, f"the figure is {figure}: nothing recorded is of the course as it is now")
    right, interval = float(recorded[0]), newest_interval(table["figure"])
    range_text, holds = f"{low:g} to {high:g}", misses(low, high, right, interval) == 1.0
    text = f"{range_text} holds the recorded {right:.3g}"
    if holds and interval and not low <= right <= high:
        text = f"{range_text} meets the interval of the recorded {right:.3g} [{interval[0]:.3g}, {interval[1]:.3g}]"
    if not holds:
        beside = off(low if right < low else high, right)
        text = f"{range_text} does not hold the recorded {right:.3g}: {beside}"
    return Gate(name, holds, text + why, scored={"range": (low, high), "found": right, "interval": interval})


def _known_range(name: str, low: float, high: float, table: dict[str, Any]) -> Gate:
    """Of a figure that follows from what is given. A wrong range is told what it overlooks, and not the figure."""
    right, range_text = table["is"], f"{low:g} to {high:g}"
    scored = {"range": (low, high), "found": right, "interval": None}
    if low <= right <= high:
        text = f"{range_text} holds {right:.3g}" + (f". {table['why']}" if "why" in table else "")
        return Gate(name, True, text, scored=scored)
    side = "low" if high < right else "high"
    text = f"{range_text} lies too {side}" + (f". {says}" if (says := table.get("says", {}).get(side, "")) else "")
    return Gate(name, False, text, scored=scored)


def _counts(exercise: Exercise, path: Path, parent: worker.ParentPipe) -> Gates:
    """Functions of a size, against the traffic counter, at all sizes of the program."""
    file = exercise.folder / "cases/program.py"
    program, reader, results = load(file), load(path), Gates()
    sent = _sends(exercise, file, program.SIZES, parent)
    for name, table in exercise.answers.items():
        function, run = getattr(reader, name, None), table.get("run", "run")
        if not inspect.isfunction(function):
            results.append(Gate(name, False, f"the file has no function `{name}`"))
            continue
        for key, size in program.SIZES.items():
            counted = table.get("number", name)
            traffic = sent[key, run] if sent else count(getattr(program, run), **program.inputs(**size, device="cpu"))
            right = float(getattr(traffic if hasattr(traffic, counted) else traffic.total, counted))
            parent(f"{name} at size {key}", 0.0)
            value = function(**size)
            at = f"{name}({', '.join(f'{key}={amount}' for key, amount in size.items())})"
            if number(value) != right:
                is_seen = not key.startswith(UNSEEN)
                results.append(Gate(name, False, f"{at}: {_count_text(value, right)}" if is_seen else ELSEWHERE))
                break
        else:
            results.append(Gate(name, True, f"{name}: right at {len(program.SIZES)} sizes"))
    return results


def _count_text(value: Any, counted: float) -> str:
    if (said := number(value)) is None:
        return f"{_shown(value)} is no number. Counted {counted:,.0f}"
    return f"you say {said:,.10g}, counted {counted:,.0f}: {off(said, counted, is_exact=True)}"


def _sends(
    exercise: Exercise, file: Path, sizes: dict[str, dict[str, Any]], parent: worker.ParentPipe
) -> dict[Any, Any]:
    """(size, `run`) -> what a process sends, of a program whose sizes say how many `ranks` there are."""
    runs, sends_of = sorted({table.get("run", "run") for table in exercise.answers.values()}), dict[Any, Any]()
    for key, size in sizes.items():
        if "ranks" in size:
            arguments = {name: value for name, value in size.items() if name != "ranks"}
            (of_size,) = multi_process.count([(file, run) for run in runs], [arguments], size["ranks"], parent)
            sends_of |= {(key, run): sends for run, sends in zip(runs, of_size, strict=True)}
    return sends_of


def _referee(exercise: Exercise, path: Path) -> Gates:
    """`is_honest(run, ...)` of the file must say so of the honest cases, and of no mutant.

    The reader's process knows no case by its name, its docstring or its place: these stay here.
    """
    files = {file.stem: file for file in sorted((exercise.folder / "cases").glob("*.py"))}
    cases, stages = {stem: CASES[kind] for stem in files if (kind := stem.split("_")[0]) in CASES}, [""]
    with TemporaryDirectory(prefix="exercise-") as folder:
        stem_of = _hidden_copies(files, [*cases], Path(folder))
        hear = lambda stage, _: stages.append(f"{stem_of[stage]}: ")  # noqa: E731
        copies = [Path(folder) / f"{name}.py" for name in stem_of]
        try:
            told = worker.call(_judge, path, copies, environment=INTERPRETED, on_progress=hear, deadline_s=DEADLINE_S)
        except worker.ChildFailed as death:
            return [Gate("referee", False, f"{stages[-1]}{death}")]
    if not told:
        return [Gate("referee", False, "the file has no function `is_honest`")]
    for stem, (answer, calls) in sorted((stem_of[name], judgement) for name, judgement in told.items()):
        if isinstance(answer, str):
            return [Gate("referee", False, f"{stem}: {answer}")]
        if answer is not cases[stem]:
            verdict = "passes" if answer else "is refused"
            what = f"{verdict}, though it {_summary(files[stem])}. Before that `is_honest` called it {_times(calls)}"
            return [Gate(stem.split("_")[0], False, what)]
    return [Gate("referee", True, f"{len(cases)} cases judged rightly")]


def _times(calls: int) -> str:
    return "once" if calls == 1 else f"{calls} times"


def _summary(case: Path) -> str:
    return (ast.get_docstring(ast.parse(case.read_bytes())) or "").partition("\n")[0]


def _hidden_copies(files: dict[str, Path], cases: list[str], folder: Path) -> dict[str, str]:
    """Copies the cases without their docstrings, and what they import: new name -> old name, in an order drawn anew."""
    stem_of = {f"case_{secrets.token_hex(4)}": stem for stem in secrets.SystemRandom().sample(cases, len(cases))}
    for name, stem in stem_of.items():
        tree = ast.parse(files[stem].read_bytes())
        tree.body = tree.body[ast.get_docstring(tree) is not None :]
        (folder / f"{name}.py").write_text(ast.unparse(tree), encoding="utf-8")
    for stem in files.keys() - cases:
        shutil.copy(files[stem], folder)
    return stem_of


def _judge(path: Path, cases: list[Path], parent: worker.ParentPipe) -> dict[str, tuple[bool | str, int]]:
    """By the name of a case, whether the reader's `is_honest` passes it, or what it raises, and how often it called it.

    Empty if there is no `is_honest`.
    """
    torch.set_num_threads(1)  # arrays are small, and on a busy machine threads wait for each other
    is_honest, answers = getattr(load(path), "is_honest", None), dict[str, tuple[bool | str, int]]()
    if not inspect.isfunction(is_honest):
        return {}
    for case in cases:
        parent(case.stem, 0.0)
        run, calls = _counted(load(case).run)
        try:
            answer: bool | str = bool(is_honest(run))
        except Exception as error:  # noqa: BLE001 (the file is the reader's)
            answer = worker.one_line(error)
        answers[case.stem] = answer, len(calls)
    return answers


def _counted(run: Callable[..., Any]) -> tuple[Callable[..., Any], list[None]]:
    """`run`, and a list that grows by one with each call of it."""
    calls = list[None]()

    @functools.wraps(run)
    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        return run(*args, **kwargs)

    return counted, calls
