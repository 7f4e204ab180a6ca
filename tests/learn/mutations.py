"""Random mistakes in the solutions of exercises: each must be caught by the gates, or be shown to change nothing.

    cd tests && python -m learn.mutations [ID]     judges them, and keeps what was said in learn/mutations.json

A mutation changes one operator, constant, mask, `other` or reduction of a kernel or of `run`. Those that pass are
`equivalent` only with a reason in EQUIVALENT; others are holes in the exercise's gates.
"""

import ast
import copy
import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from common.learn.exercise import Exercise, exercises, find
from common.learn.gate import NOT_YET
from common.learn.grade import grade
from common.learn.kernels import GIVEN
from common.program import finish, status_of
from common.record.files import write_text

RESULTS = Path(__file__).with_name("mutations.json")
MANY = 20  # of each solution
OTHERS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Div: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.BitAnd: ast.BitOr,
    ast.Eq: ast.NotEq,
}  # fmt: skip
CALLS = {"max": "min", "min": "max", "maximum": "minimum", "sum": "max", "exp": "log", "zeros": "ones", "cdiv": "fdiv"}
# "ID: mutation": why it changes nothing that a reader could see
EQUIVALENT: dict[str, str] = {}


def mutations(exercise: Exercise) -> dict[str, str]:
    """What was changed -> the text of the solution with it: so many, drawn with the exercise's name as the seed."""
    tree = ast.parse(exercise.solution.read_text(encoding="utf-8"))
    places = [(number, kind) for number, node in enumerate(ast.walk(tree)) for kind in _kinds(tree, node)]
    draw, found = random.Random(exercise.id), dict[str, str]()
    for number, kind in draw.sample(places, len(places)):
        mutant = copy.deepcopy(tree)
        node = next(each for place, each in enumerate(ast.walk(mutant)) if place == number)
        before = ast.unparse(node)
        _change(node, kind)
        name = f"line {node.lineno}: {before} -> {ast.unparse(node)}"
        if before != ast.unparse(node) and name not in found:
            found[name] = ast.unparse(ast.fix_missing_locations(mutant))
        if len(found) == MANY:
            break
    return found


def _kinds(tree: ast.Module, node: ast.AST) -> list[str]:
    """How a node can be changed, if it is the reader's: in a kernel or in `run`."""
    own = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name not in GIVEN]
    line = getattr(node, "lineno", 0)
    if not any(each.body[0].lineno <= line <= (each.end_lineno or 0) for each in own):
        return []
    if isinstance(node, ast.BinOp) and type(node.op) in OTHERS:
        return ["operator"]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
        return ["comparison"]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ["more", "less"]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        keywords = [word.arg for word in node.keywords if word.arg in ("mask", "other")]
        return [*keywords, *["call"] * (node.func.attr in CALLS)]
    return []


def _change(node: ast.AST, kind: str) -> None:
    match node:
        case ast.BinOp():
            node.op = OTHERS[type(node.op)]()
        case ast.Compare():
            node.ops[0] = OTHERS[type(node.ops[0])]()
        case ast.Constant():
            node.value += 1 if kind == "more" else -1
        case ast.Call(func=ast.Attribute()) if kind == "call":
            node.func.attr = CALLS[node.func.attr]
        case ast.Call():
            node.keywords = [word for word in node.keywords if word.arg != kind]


def judge(exercise: Exercise, text: str) -> tuple[bool, str]:
    """Is it caught, and what was said last."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{exercise.folder.name}.py"
        path.write_text(f'"""A mutant."""\n{text}', encoding="utf-8")
        found = grade(exercise, path)
    last = [gate for gate in found.gates if not gate.is_extra][-1]
    return found.status == NOT_YET, f"{last.name}: {last.text}"


def kernels() -> list[Exercise]:
    return [each for each in exercises() if each.kind in ("write", "repair")]


def main(name: str = "") -> int:
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    passed = 0
    for exercise in [find(name)] if name else kernels():
        said = {}
        for what, text in mutations(exercise).items():
            caught, last = judge(exercise, text)
            why = EQUIVALENT.get(f"{exercise.id}: {what}", "")
            said[what] = {"caught": caught, "said": last, "equivalent": why}
            passed += not caught and not why
            print(f"{exercise.id}: {what}: {'caught' if caught else why or 'PASSED'}: {last[:120]}", flush=True)
        known[exercise.id] = {"hash": exercise.hash, "mutations": said}
        write_text(RESULTS, json.dumps(known, indent=1, sort_keys=True) + "\n")
    print(f"{passed} passed and are not shown to be equivalent")
    return 1 if passed else 0


if __name__ == "__main__":
    finish(lambda: status_of("mutations", lambda: main(*sys.argv[1:2])))
