"""Random mistakes in the solutions of exercises: each must be caught by the gates, or be shown to change nothing.

    cd tests && python -m learn.mutations [ID ...]     judges what is not judged yet, and keeps it in mutations.json

A mutation changes one operator, constant, type, mask, `other` or reduction of a kernel, of `run` or of a function that
counts or judges; of answers, one answer. One that passes has its reason in equivalent.toml; others are holes in the
exercise's gates. What was judged stays judged until the exercise changes: a run that was stopped goes on where it was.
"""

import ast
import copy
import json
import random
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common.learn.exercise import Exercise, exercises, find
from common.learn.gate import NOT_YET
from common.learn.grade import grade
from common.learn.kernel_gates import GIVEN
from common.program import finish, status_of
from common.record.files import write_text

RESULTS = Path(__file__).with_name("mutations.json")
EQUIVALENT = Path(__file__).with_name("equivalent.toml")  # exercise -> mutation -> why it changes nothing that counts
MANY = 20  # of each solution; fewer only where there are fewer
OTHERS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Div: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.BitAnd: ast.BitOr,
    ast.Eq: ast.NotEq, ast.And: ast.Or, ast.Or: ast.And, ast.LShift: ast.Mult,
}  # fmt: skip
NAMES = {  # what a name is mistaken for
    "tl.max": "tl.min", "tl.min": "tl.max", "tl.maximum": "tl.minimum", "tl.minimum": "tl.maximum", "tl.sum": "tl.max",
    "tl.exp": "tl.exp2", "torch.zeros": "torch.empty", "triton.cdiv": "int.__floordiv__", "tl.float32": "tl.float16",
}  # fmt: skip
# What an operator is given so that it changes nothing; None: the same twice
NOTHING = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 1, ast.FloorDiv: 1, ast.BitAnd: None}
FACTOR = 1.01  # by which a range that holds a figure is moved beyond it


def mutations(exercise: Exercise) -> dict[str, str]:
    """What was changed -> the text of the solution with it: so many, drawn with the exercise's name as the seed."""
    tree = ast.parse(exercise.solution.read_text(encoding="utf-8"))
    own = _own(exercise, tree)
    places = [(number, kind) for number, node in enumerate(ast.walk(tree)) for kind in _kinds(exercise, own, node)]
    draw, found = random.Random(exercise.id), dict[str, str]()
    for number, kind in draw.sample(places, len(places)):
        mutant = copy.deepcopy(tree)
        node: Any = next(each for place, each in enumerate(ast.walk(mutant)) if place == number)
        before, line = ast.unparse(node), getattr(node, "lineno", 0)
        _change(node, kind)
        name = f"line {line}: {before} -> {ast.unparse(node)}"
        text = ast.unparse(ast.fix_missing_locations(mutant))
        if before != ast.unparse(node) and text not in found.values():
            column = f", column {node.col_offset + 1}" if name in found else ""  # the same change elsewhere in the line
            found[name + column] = text
        if len(found) == MANY:
            break
    return found


def _own(exercise: Exercise, tree: ast.Module) -> set[ast.AST]:
    """The nodes that are the reader's: of functions, without what is given; of answers."""
    if exercise.kind in ("predict", "diagnose"):
        return {each for each in tree.body if isinstance(each, ast.Assign)}
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name not in GIVEN]
    return {node for each in functions for statement in each.body for node in ast.walk(statement)}


def _kinds(exercise: Exercise, own: set[ast.AST], node: ast.AST) -> list[str]:
    """How a node can be changed, if it is the reader's."""
    if node not in own:
        return []
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) if exercise.kind in ("predict", "diagnose"):
            table = exercise.answers[name]
            number = ["high", "low", "swapped", "wide"] if "figure" in table else ["double", "half"]
            return [f"word {word}" for word in table.get("of", [])] or number
        case ast.BinOp() | ast.BoolOp() if type(node.op) in OTHERS:
            return ["operator", *["without"] * (type(node.op) in NOTHING)]
        case ast.Compare() if type(node.ops[0]) in OTHERS:
            return ["comparison", "turned"]
        case ast.Constant() if type(node.value) in (int, float):
            return ["more", "less"]
        case ast.Attribute() if ast.unparse(node) in NAMES:
            return ["name"]
        case ast.Call(func=ast.Attribute()):
            return [word.arg for word in node.keywords if word.arg in ("mask", "other")]
    return []


def _change(node: Any, kind: str) -> None:
    match node:
        case ast.Assign():
            node.value = _other_answer(node.value, kind)
        case ast.BinOp() if kind == "without":
            node.right = ast.Constant(found) if (found := NOTHING[type(node.op)]) is not None else node.left
        case ast.BinOp() | ast.BoolOp():
            node.op = OTHERS[type(node.op)]()
        case ast.Compare() if kind == "turned":
            node.left, node.comparators[0] = node.comparators[0], node.left
        case ast.Compare():
            node.ops[0] = OTHERS[type(node.ops[0])]()
        case ast.Constant(value=float()):
            node.value = node.value + 1 if kind == "more" else node.value / 2
        case ast.Constant():
            node.value += 1 if kind == "more" else -1
        case ast.Attribute():
            node.value, node.attr = (new := ast.parse(NAMES[ast.unparse(node)], mode="eval").body).value, new.attr
        case ast.Call():
            node.keywords = [word for word in node.keywords if word.arg != kind]


def _other_answer(value: ast.expr, kind: str) -> ast.expr:
    """Another word; a number that is doubled or halved; a range beyond the old one, or one that says nothing."""
    if kind.startswith("word "):
        return ast.Constant(kind.removeprefix("word "))
    if kind in ("double", "half"):
        return ast.BinOp(value, ast.Mult() if kind == "double" else ast.Div(), ast.Constant(2))
    low, high = ast.literal_eval(value)
    by = high / low * FACTOR
    other = {"high": (low * by, high * by), "low": (low / by, high / by), "swapped": (high, low)}
    return ast.parse(repr(other.get(kind, (low / 100, high * 100))), mode="eval").body


def judge(exercise: Exercise, text: str) -> tuple[bool, str]:
    """Is it caught, and what was said last."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{exercise.folder.name}.py"
        path.write_text(f'"""A mutant."""\n{text}', encoding="utf-8")
        found = grade(exercise, path)
    needed = [gate for gate in found.gates if not gate.is_extra]
    last = next((gate for gate in needed if gate.passed is False), needed[-1])
    return found.status == NOT_YET, f"{last.name}: {last.text}"


def results() -> dict[str, dict[str, Any]]:
    """By exercise: its hash, and of each mutation whether it was caught, what was said, why it is equivalent."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def equivalent(exercise: Exercise) -> dict[str, str]:
    return dict(tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get(exercise.id, {}))


def _keep(exercise: Exercise, said: dict[str, Any]) -> None:
    """In the file as it is now: another run may judge another exercise."""
    text = json.dumps(results() | {exercise.id: {"hash": exercise.hash, "mutations": said}}, indent=1, sort_keys=True)
    write_text(RESULTS, text + "\n")


def judge_all(exercise: Exercise) -> list[str]:
    """Judges what is not known to be caught or equivalent. Returns what `open_ones` does."""
    old, reasons = results().get(exercise.id, {}), equivalent(exercise)
    known = old["mutations"] if old.get("hash") == exercise.hash else {}
    said = {}
    for what, text in mutations(exercise).items():
        if not (what in known and (known[what]["caught"] or what in reasons)):
            caught, last = judge(exercise, text)
            known[what] = {"caught": caught, "said": last}
            print(f"{exercise.id}: {what}: {'caught' if caught else 'PASSED'}: {last[:160]}", flush=True)
        said[what] = {key: known[what][key] for key in ("caught", "said")}
        if not said[what]["caught"]:
            said[what]["equivalent"] = reasons.get(what, "")
        _keep(exercise, said | {rest: known[rest] for rest in known.keys() - said.keys()})
    _keep(exercise, said)
    return open_ones(exercise, said, reasons)


def open_ones(exercise: Exercise, said: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    """A line for each mutation that passes without a reason, and for each reason of one that does not pass."""
    passed = {what for what, each in said.items() if not each["caught"]}
    lines = [f"{what}: passes, and equivalent.toml has no reason" for what in sorted(passed - reasons.keys())]
    lines += [f"{what}: equivalent.toml has a reason, but none such passes" for what in sorted(reasons.keys() - passed)]
    return [f"{exercise.id}: {line}" for line in lines]


def main(*names: str) -> int:
    found = [line for exercise in (map(find, names) if names else exercises()) for line in judge_all(exercise)]
    print("\n".join([*found, f"mutations that are not explained: {len(found)}"]))
    return 1 if found else 0


if __name__ == "__main__":
    finish(lambda: status_of("mutations", lambda: main(*sys.argv[1:])))
