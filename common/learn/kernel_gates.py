"""The gates of a kernel: right, traffic, machine code, speed. The exercise's solution stands as the baseline.

The harness judges the file as it judges any pair, at all check sizes of the solution, on hidden seeds and hard values.
"""

import ast
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from common.engine.runner import run_pairs
from common.isolation import worker
from common.learn import diagnosis, multi_process, traffic_gates
from common.learn.errors import in_file, of_processes
from common.learn.exercise import Exercise
from common.learn.failure_text import HARD, Told, sentence, told
from common.learn.gate import Gate
from common.learn.kernel_lint import python_words
from common.learn.memcheck import NOTHING, Looked, look
from common.machine.device import has_gpu
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair, discover
from common.pairs.source import remarks
from common.pairs.syntax import ContractError
from common.record.outcome import BELIEVED, FAILED
from common.record.result import PairResult
from common.show.formats import digits, seconds
from common.show.words import text as text_of

GIVEN = ("inputs", "reference", "cost")  # functions that the reader leaves as they are
DEADLINE_S = 60.0  # without a word: each size is one
SLOWER = 1.2  # the most times the solution's time
STAR = 1.02  # times as fast as the solution


def gates(exercise: Exercise, path: Path) -> Iterator[Gate]:
    """In order, each computed when it is asked for."""
    with as_pair(exercise, path) as folder:
        try:
            (pair,) = discover(folder)
        except ContractError as error:
            yield Gate("right", False, _named(str(error), folder, path))
            return
        if problem := _not_begun(exercise, pair):
            yield Gate("right", False, problem)
            return
        if pair.ranks > 1:
            yield from _several(exercise, pair, folder, path)
            return
        found = look(pair)
        if found.fatal:
            yield Gate("right", False, _with_words(found.fatal, pair))
            return
        yield _right(pair, folder, path, found)
        yield from traffic_gates.traffic(exercise.gates, pair)
        for gate in traffic_gates.code(exercise.gates, pair):
            yield replace(gate, text=in_file(gate.text, pair.variants[0].path))
        yield from _speed(exercise, pair)


def _several(exercise: Exercise, pair: Pair, folder: Path, path: Path) -> Iterator[Gate]:
    """Of a file that runs in several processes: a deadlock ends it in seconds, before the harness waits for it."""
    try:
        sent = worker.call(multi_process.trial, pair, deadline_s=multi_process.DEADLINE_S)
    except worker.ChildFailed as death:
        yield Gate("right", False, _named(of_processes(str(death)), folder, path))
        return
    right = _right(pair, folder, path)
    is_early = right.passed is False and any(own.early for _, own in sent)
    yield replace(right, text=right.text + multi_process.EARLY * is_early)
    yield multi_process.gate(exercise.gates, sent)
    yield from _speed(exercise, pair)


@contextmanager
def as_pair(exercise: Exercise, path: Path) -> Iterator[Path]:
    """A folder with the solution as a baseline, the file as its variant, and what both import."""
    with TemporaryDirectory(prefix="exercise-") as name:
        folder, stem = Path(name) / exercise.chapter, exercise.folder.name
        folder.mkdir()
        shutil.copy(exercise.solution, folder / f"baseline_{stem}.py")
        own = re.sub(rb"(?m)^RANKS = .*", b"", path.read_bytes())  # the solution has it, and only a baseline may
        if re.match(rb"#|import |from |\r?\n", own):  # a docstring is asked of pairs only; lines keep their numbers
            own = b'"""An answer."""; ' + own
        (folder / f"optimized_{stem}.py").write_bytes(own)
        for given in exercise.folder.glob("given*.py"):
            shutil.copy(given, folder)
        yield folder


def _named(text: str, folder: Path, path: Path) -> str:
    """A message about a copy is about the reader's file."""
    return re.sub(rf"({re.escape(str(folder))}/)?optimized_\w+\.py", path.name, text)


def _not_begun(exercise: Exercise, pair: Pair) -> str:
    """Why there is nothing to judge: nothing has changed, too much has, or no kernel is there."""
    (own,) = pair.variants
    mine, start, solution = (_functions(path) for path in (own.path, exercise.start, exercise.solution))
    if mine == start:
        return "this is the file as you got it: nothing in its code has changed yet"
    for name in GIVEN:
        if name in mine and mine[name] != solution.get(name):
            return f"`{name}` is given and must stay as it is: only `run` and its kernels are yours"
    if own.constants["SIZES"] != pair.baseline.constants["SIZES"]:
        return "SIZES is given by the exercise: leave it out"
    if any("launches no kernel" in text for text in remarks(own, pair.baseline)):
        return "`run` launches no Triton kernel of this file: the work has to be done by yours"
    return ""


def _functions(path: Path) -> dict[str, str]:
    """Its functions without docstrings and comments, and the rest of the module under no name."""
    found = {"": ""}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            found[node.name] = ast.dump(node)
        elif not isinstance(node, ast.Expr):
            found[""] += ast.dump(node)
    return found


def _right(pair: Pair, folder: Path, path: Path, found: Looked = NOTHING) -> Gate:
    """`found`: when addresses were looked at, before the harness judges."""
    row = _result(pair, check_only=True).rows[0]
    if row.verdict in ("verified", *BELIEVED):
        try:
            problem = "" if pair.ranks > 1 else _in_child(diagnosis.all_bounds, pair, pair.check_sizes)
        except worker.ChildFailed as death:
            return Gate("right", False, f"the values are right, but when its accesses are followed it crashes: {death}")
        if problem:
            return Gate("right", False, f"the values are right, but {problem}")
        sizes = ", ".join(size.removeprefix("check/") for size in pair.check_sizes)
        return Gate("right", True, f"right at all sizes ({sizes}), on several seeds and on hard values ({HARD})")
    if row.verdict == "skipped":
        return Gate("right", None, f"cannot be judged here: {text_of(row.reason)}")
    return Gate("right", False, _with_words(_told(pair, _named(text_of(row.reason), folder, path), found), pair))


def _with_words(text: str, pair: Pair) -> str:
    """What is wrong, and what of Python does it in a kernel, if anything does."""
    words = sentence(python_words(pair.variants[0].path))
    return text + bool(words) * (" " if text.endswith("?") else ". ") + words


def _told(pair: Pair, reason: str, found: Looked) -> str:
    """What is wrong, in which element, and what it looks like, from the loads and stores at that size."""
    said = told(reason)
    if found.error and (said is None or said.size == found.size):
        return found.error
    if reason.startswith("killed by"):
        return f"{reason}. A store beside an array does this: compare its offsets and its mask with the array's size"
    if said is None:
        return in_file(reason, pair.variants[0].path)
    try:
        return said.text(pair) if pair.ranks > 1 else _in_child(diagnosis.look, pair, said)
    except worker.ChildFailed:  # the harness has said what is wrong: this would only have said what it looks like
        return said.text(pair)


def _result(pair: Pair, check_only: bool = False, fast: bool = False) -> PairResult:
    """What the harness says of the pair. Raises KeyboardInterrupt: an interrupted run says nothing of it."""
    record = run_pairs([pair], check_only=check_only, fast=fast)
    if record.environment["interrupted"]:
        raise KeyboardInterrupt
    return record.pairs[0]


def _in_child(function: Callable[..., str], pair: Pair, of: Told | list[str]) -> str:
    """Raises ChildFailed."""
    found: str = worker.call(function, pair, of, environment=INTERPRETED, deadline_s=DEADLINE_S)
    return found


def _speed(exercise: Exercise, pair: Pair) -> Iterator[Gate]:
    if not has_gpu():
        yield Gate("speed", None, "speed is not graded on this machine: it has no GPU")
        return
    result = _result(pair, fast=True)
    row = result.rows[0]
    if row.interval is None or row.ratio is None:
        said = told(text_of(row.reason))
        reason = said.text(pair) if said else text_of(row.reason)
        yield Gate("speed", False if row.verdict in FAILED else None, f"not timed: {row.verdict}: {reason}")
        return
    low, high, least = *row.interval, 1 / exercise.gates.get("speed", SLOWER)
    arm = result.arms[row.variant]
    text = f"{digits(row.ratio)}x of the solution's speed [{digits(low)}, {digits(high)}], {seconds(arm.median_s)}"
    text += f", {arm.of_limit:.0%} of this machine's limit" if arm.of_limit else ""
    yield Gate("speed", low >= least or (False if high < least else None), text, is_unsure=low < least <= high)
    share = exercise.gates.get("limit")
    near = share is not None and arm.of_limit is not None and arm.of_limit >= share
    yield Gate("star", low > STAR or near, f"faster than the solution, or at least {share or 1:.0%} of the limit", True)
