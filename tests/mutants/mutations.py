"""Random mistakes in the solutions of exercises: each must be caught by the gates, or be shown to change nothing.

A mutation changes one operator, constant, type, mask, `other` or reduction of a kernel, of `run` or of a function that
counts or judges; of answers, one answer. One that passes has its reason in equivalent.toml; others are holes in the
exercise's gates.
"""

import ast
import random
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common.learn.exercise import Exercise, exercises
from common.learn.kernel_gates import GIVEN
from mutants import answers
from mutants.results import Group, Judgement, Wrong, digest

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


def groups() -> Iterator[Group]:
    reasons = equivalent()
    for exercise in exercises():
        reason = reasons.get(exercise.id, {})
        wrong = {
            what: Wrong(digest(exercise.hash, text), passes=reason.get(what, ""))
            for what, text in mutations(exercise).items()
        }
        yield Group(exercise.id, wrong, partial(_judge, exercise))


def equivalent() -> dict[str, dict[str, str]]:
    """Exercise -> mutation -> why it is known to pass."""
    return tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))


def mutations(exercise: Exercise) -> dict[str, str]:
    """What was changed -> the text of the solution with it: so many, drawn with the exercise's name as the seed.

    A number's change is named with the line that it stands in, as text: lines before it may come and go.
    """
    text = exercise.solution.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), [line.split("  #")[0].strip() for line in text.splitlines()]
    own = _own(exercise, tree)
    places = [(number, kind) for number, node in enumerate(ast.walk(tree)) for kind in _kinds(exercise, own, node)]
    draw, found = random.Random(exercise.id), dict[str, str]()
    for number, kind in draw.sample(places, len(places)):
        mutant = ast.parse(text)  # many times faster than a copy of the tree
        node: Any = next(each for place, each in enumerate(ast.walk(mutant)) if place == number)
        before, is_number = ast.unparse(node), isinstance(node, ast.Constant)
        _change(node, kind)
        name = f"{before} -> {ast.unparse(node)}{f' in {lines[node.lineno - 1]}' * is_number}"
        changed = ast.unparse(mutant)
        if before != ast.unparse(node) and changed not in found.values():
            while name in found:  # the same change elsewhere
                name += ", again"
            found[name] = changed
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
            number = ["high", "low", "swapped", "wide"] if {"figure", "widest"} & table.keys() else ["double", "half"]
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


def _judge(exercise: Exercise, names: list[str], device: str) -> Iterator[Judgement]:
    texts = mutations(exercise)
    for what in names:
        yield what, *answers.judge(exercise, texts[what])
