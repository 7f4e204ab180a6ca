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
from common.learn import device_gates, diagnosis, multi_process, traffic_gates
from common.learn.errors import explain_processes, in_file, unwaited_text
from common.learn.exercise import Exercise
from common.learn.failure_text import HARD, WrongAnswer, sentence, wrong_answer
from common.learn.gate import Gate
from common.learn.kernel_lint import python_words
from common.learn.memcheck import NOTHING, MemcheckResult, memcheck
from common.learn.narrow_integers import wrapped_answer
from common.machine.device import has_gpu
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair, discover
from common.pairs.source import has_no_launch
from common.pairs.syntax import ContractError
from common.record.outcome import FAILED, WITH_SPEEDUP, Cause, Finding, Verdict
from common.record.result import PairResult
from common.show.formats import digits, seconds
from common.show.words import text, word

GIVEN = ("inputs", "reference", "cost")  # functions that the reader leaves as they are
DEADLINE_S = 60.0  # without a word: each size is one
STAR = 1.02  # times as fast as the solution


def gates(exercise: Exercise, path: Path) -> Iterator[Gate]:
    """In order, each computed when it is asked for."""
    with as_pair(exercise, path) as folder:
        try:
            (pair,) = discover(folder)
        except ContractError as error:
            yield Gate("right", False, _about_file(str(error), folder, path))
            return
        if problem := _not_begun(exercise, pair):
            yield Gate("right", False, problem)
            return
        if pair.ranks > 1:
            yield from _multi_process_gates(exercise, pair, folder, path)
            return
        memory = memcheck(pair) if pair.baseline.has_kernel else NOTHING  # torch looks at its own addresses
        if memory.fatal:
            yield Gate("right", False, _with_words(memory.fatal, pair))
            return
        yield _narrow(exercise, pair, _right(pair, folder, path, memory))
        yield from traffic_gates.traffic(exercise.gates, pair)
        for gate in traffic_gates.code(exercise.gates, pair):
            yield replace(gate, text=in_file(gate.text, pair.variants[0].path))
        yield from device_gates.gates(exercise.gates, pair)
        yield from _speed(exercise, pair)


def _narrow(exercise: Exercise, pair: Pair, right: Gate) -> Gate:
    """A gate that has passed, unless offsets that wrap around make the answer wrong."""
    bits = exercise.gates.get("narrow", {})
    if not right.passed or not bits:
        return right
    if unknown := [size for size in bits if size not in pair.sizes]:
        return Gate("right", False, f"narrow: there is no size {unknown[0]}")
    return Gate("right", False, problem) if (problem := wrapped_answer(pair, bits)) else right


def _multi_process_gates(exercise: Exercise, pair: Pair, folder: Path, path: Path) -> Iterator[Gate]:
    """Of a file that runs in several processes: a deadlock ends it in seconds, before the harness waits for it."""
    try:
        sent = worker.call(multi_process.trial, pair, environment=INTERPRETED, deadline_s=multi_process.DEADLINE_S)
    except worker.ChildFailed as death:
        yield Gate("right", False, _about_file(explain_processes(death, pair.variants[0].path), folder, path))
        return
    right = _right(pair, folder, path)
    if right.passed is False:
        _, own = zip(*sent, strict=True)
        unwaited = max(sends.unwaited for sends in own)
        why = multi_process.EARLY if any(sends.early for sends in own) else unwaited_text(unwaited)
        right = replace(right, text=right.text + why)
    elif right.passed:
        right = _in_other_ranks(pair, right, folder, path)
    yield right
    yield multi_process.gate(exercise.gates, sent)
    yield from _speed(exercise, pair)


def _in_other_ranks(pair: Pair, right: Gate, folder: Path, path: Path) -> Gate:
    """A gate that has passed, unless another number of processes finds something."""
    here = f"right in {pair.ranks} processes, but not in {multi_process.OTHER_RANKS}"
    advice = "does it take their number from dist.get_world_size(), everywhere?"
    try:
        is_other = worker.call(
            multi_process.differs, pair, environment=INTERPRETED, deadline_s=multi_process.DEADLINE_S
        )
    except worker.ChildFailed as death:
        return Gate("right", False, _about_file(f"{here} ({death}): {advice}", folder, path))
    return Gate("right", False, f"{here}: {advice}") if is_other else right


@contextmanager
def as_pair(exercise: Exercise, path: Path) -> Iterator[Path]:
    """A folder with the solution as a baseline, the file as its variant, and what both import."""
    with TemporaryDirectory(prefix="exercise-") as name:
        folder, stem = Path(name) / exercise.chapter, exercise.folder.name
        folder.mkdir()
        shutil.copy(exercise.solution, folder / f"baseline_{stem}.py")
        source = re.sub(rb"(?m)^(RANKS|STRUCTURE) = .*", b"", path.read_bytes())  # only a baseline may have them
        if re.match(rb"#|import |from |\r?\n", source):  # a docstring is asked of pairs only; lines keep their numbers
            source = b'"""An answer."""; ' + source
        (folder / f"optimized_{stem}.py").write_bytes(source)
        for given in exercise.folder.glob("given*.py"):
            shutil.copy(given, folder)
        yield folder


def _about_file(message: str, folder: Path, path: Path) -> str:
    """A message about a copy is about the reader's file."""
    return re.sub(rf"({re.escape(str(folder))}/)?optimized_\w+\.py", path.name, message)


def _not_begun(exercise: Exercise, pair: Pair) -> str:
    """Why there is nothing to judge: nothing has changed, too much has, or no kernel is there."""
    (variant,) = pair.variants
    functions, start, solution = (_functions(path) for path in (variant.path, exercise.start, exercise.solution))
    if functions == start:
        return "this is the file as you got it: nothing in its code has changed yet"
    for name in GIVEN:
        if name in functions and functions[name] != solution.get(name):
            return f"`{name}` is given and must stay as it is: only `run` and its kernels are yours"
    if variant.constants["SIZES"] != pair.baseline.constants["SIZES"]:
        return "SIZES is given by the exercise: leave it out"
    if has_no_launch(variant, pair.baseline):
        return "`run` launches no Triton kernel of this file: the work has to be done by yours"
    return ""


def _functions(path: Path) -> dict[str, str]:
    """Its functions without docstrings and comments, and the rest of the module under no name."""
    dumps = {"": ""}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            dumps[node.name] = ast.dump(node)
        elif not isinstance(node, ast.Expr):
            dumps[""] += ast.dump(node)
    return dumps


def _right(pair: Pair, folder: Path, path: Path, memory: MemcheckResult = NOTHING) -> Gate:
    """`memory`: when addresses were looked at, before the harness judges."""
    row = _result(pair, check_only=True).rows[0]
    if row.verdict in (Verdict.VERIFIED, *WITH_SPEEDUP):
        try:
            has_kernel = pair.ranks == 1 and pair.baseline.has_kernel
            problem = "" if not has_kernel else _in_child(diagnosis.all_bounds, pair, pair.check_sizes)
        except worker.ChildFailed as death:
            return Gate("right", False, f"the values are right, but when its accesses are followed it crashes: {death}")
        if problem:
            return Gate("right", False, f"the values are right, but {problem}")
        sizes = ", ".join(size.removeprefix("check/") for size in pair.check_sizes)
        return Gate("right", True, f"right at all sizes ({sizes}), on several seeds and on hard values ({HARD})")
    if row.verdict == Verdict.SKIPPED:
        return Gate("right", None, f"cannot be judged here: {text(row.reason)}")
    problem = _about_file(_explain_failure(pair, row.reason, memory), folder, path)
    return Gate("right", False, _with_words(problem, pair))


def _with_words(message: str, pair: Pair) -> str:
    """What is wrong, and what of Python does it in a kernel, if anything does."""
    words = sentence(python_words(pair.variants[0].path))
    return message + bool(words) * (" " if message.endswith("?") else ". ") + words


def _explain_failure(pair: Pair, reason: Finding | None, memory: MemcheckResult) -> str:
    """What is wrong, in which element, and what it looks like, from the loads and stores at that size."""
    failure = wrong_answer(reason)
    if memory.error and (failure is None or failure.size == memory.size):
        return memory.error
    if reason and reason.cause == Cause.KILLED:
        return (
            f"{text(reason)}. A store beside an array does this: compare its offsets and its mask with the array's size"
        )
    if failure is None:
        return in_file(text(reason), pair.variants[0].path)
    try:
        return failure.text(pair) if pair.ranks > 1 else _in_child(diagnosis.diagnose, pair, failure)
    except worker.ChildFailed:  # the harness has said what is wrong: this would only have said what it looks like
        return failure.text(pair)


def _result(pair: Pair, check_only: bool = False, fast: bool = False) -> PairResult:
    """What the harness says of the pair. Raises KeyboardInterrupt: an interrupted run says nothing of it."""
    record = run_pairs([pair], check_only=check_only, fast=fast)
    if record.environment["interrupted"]:
        raise KeyboardInterrupt
    return record.pairs[0]


def _in_child(function: Callable[..., str], pair: Pair, of: WrongAnswer | list[str]) -> str:
    """Raises ChildFailed."""
    answer: str = worker.call(function, pair, of, environment=INTERPRETED, deadline_s=DEADLINE_S)
    return answer


def _speed(exercise: Exercise, pair: Pair) -> Iterator[Gate]:
    if not has_gpu():
        yield Gate("speed", None, "speed is not graded on this machine: it has no GPU")
        return
    result = _result(pair, fast=True)
    row = result.rows[0]
    if row.interval is None or row.ratio is None:
        failure = wrong_answer(row.reason)
        reason = failure.text(pair) if failure else text(row.reason)
        says = f"not timed: {word(row.verdict)}: {reason}"
        passed, is_unsure = False if row.verdict in FAILED else None, row.verdict != Verdict.SKIPPED
        yield Gate("speed", passed, says, is_unsure=is_unsure)
        return
    low, high, least = *row.interval, 1 / exercise.slower
    arm = result.arms[row.variant]
    message = f"{digits(row.ratio)}x of the solution's speed [{digits(low)}, {digits(high)}], {seconds(arm.median_s)}"
    message += f", {arm.of_limit:.0%} of this machine's limit" if arm.of_limit else ""
    message += f"; at least {digits(least)}x passes" * (low < least)
    yield Gate("speed", low >= least or (False if high < least else None), message, is_unsure=low < least <= high)
    share = exercise.gates.get("limit")
    near = share is not None and arm.of_limit is not None and arm.of_limit >= share
    yield Gate("star", low > STAR or near, f"faster than the solution, or at least {share or 1:.0%} of the limit", True)
