"""A wrong answer that the harness found, in a reader's words: one element of one output, at a size."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from common.checks.tolerance import EPS
from common.pairs.contract import Version
from common.pairs.pair import Pair
from common.record.outcome import Cause, Finding, Where
from common.show import words

HARD = "very large and very small values, zeros, equal values, infinities and NaN"
WRITTEN = ("-inf", "NaN", "-0.0 and denormals")  # draws of common.checks.stress that write into some elements
TYPES = {"fp16": "float16", "bf16": "bfloat16"}
ROUNDINGS = 16  # times the type's eps: what a long sum in 16 bits is off by


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer of one call. `draw`: the hard values, if there are any; `output`: counts from 0."""

    finding: Finding
    size: str
    draw: str
    output: int | None

    def where(self, pair: Pair) -> str:
        facts = self.finding.facts
        rank = f"rank {facts['rank']}: " if "rank" in facts else ""
        on = f" on {self.draw}" if self.draw else ""
        on += ", which this test writes into some elements of its inputs" if self.draw in WRITTEN else ""
        return f"{rank}wrong answer at size {size_text(self.size, pair)}{on}"

    @property
    def rounding_cause(self) -> str:
        """Why the errors of all elements are too large together, where each of them is small; else empty."""
        facts = self.finding.facts
        kind = TYPES.get(facts.get("precision", ""))
        if (
            self.finding.cause != Cause.WRONG_RMS
            or not kind
            or float(facts["error"]) > ROUNDINGS * EPS[facts["precision"]]
        ):
            return ""
        helps = "multiply and add in float32, and approximate no function"
        return f"the error is as large as that of products or sums in {kind}: {helps}"

    def text(self, pair: Pair, shapes: Sequence[Sequence[int]] = ()) -> str:
        """The whole of it. `shapes`: of the right outputs, where they are known."""
        number, of, facts = self.output or 0, len(shapes), self.finding.facts
        name = output(pair, number, of) if of else "" if self.output is None else f"output {number + 1}"
        shape = shapes[number] if of else ()
        if self.finding.cause == Cause.WRONG_ELEMENT:
            got, expected = (figure(facts[key]) for key in ("got", "expected"))
            what = f"{_place(name, facts, shape)} should be {expected}, got {got}"
        elif self.finding.cause == Cause.WRONG_SPECIAL:
            what = f"NaN or infinity is not where the right answer has it, from {_place(name, facts, shape)} on"
        else:
            what = words.text(self.bare).replace("the baseline's", "the right answer's")
            what = what.partition(": not ")[0] if self.rounding_cause else what
            what = f"{name}: {what}" if self.rounding_cause or self.output is not None else what
        return f"{self.where(pair)}: {what}"

    @property
    def bare(self) -> Finding:
        """The finding without its place."""
        return replace(self.finding, facts={key: v for key, v in self.finding.facts.items() if key not in PLACE})


PLACE = ("where", "size", "draw", "filled", "rank", "path", "whose", "alone")


def figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def wrong_answer(finding: Finding | None) -> WrongAnswer | None:
    """None unless it is a wrong answer at a check size or the timed size."""
    facts = finding.facts if finding else {}
    if finding is None or facts.get("where") not in (Where.SIZE.value, Where.TIMED.value) or "gradient" in facts:
        return None
    path = str(facts.get("path", ""))
    number = int(path[1:-1]) if path[1:-1].isdigit() else None
    size = facts["size"] if facts["where"] == Where.SIZE.value else "default"
    return WrongAnswer(finding, size, facts.get("draw", ""), number)


def size_text(size: str, pair: Pair) -> str:
    """A size with its arguments: `check (rows 3, columns 127)`."""
    return f"{size} ({', '.join(f'{name} {value}' for name, value in pair.sizes[size].items())})"


def output(pair: Pair, number: int, of: int) -> str:
    """One of so many outputs: the only one, or as the solution's `reference` or `run` calls it, or by its number."""
    if of == 1:
        return "answer"
    named = (names[number] for names in _returned_names(pair.baseline) if len(names) == of)
    return next((f"`{name}`" for name in named if name), f"output {number + 1} of {of}")


def _returned_names(version: Version) -> list[list[str]]:
    """The names in the last `return` of `reference` and of `run`; empty for what is no name."""
    tree = ast.parse(version.path.read_text(encoding="utf-8"))
    functions = {node.name: node.body[-1] for node in tree.body if isinstance(node, ast.FunctionDef)}
    last = [functions[name] for name in ("reference", "run") if name in functions]
    return [
        [item.id if isinstance(item, ast.Name) else "" for item in node.value.elts]
        for node in last
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
    ]


def element(name: str, place: int, shape: Sequence[int]) -> str:
    """Of an output, its element at a place of the flat array, by its index."""
    index = f"[{', '.join(str(int(coordinate)) for coordinate in np.unravel_index(place, tuple(shape)))}]"
    if name.startswith("`"):
        return f"{name[:-1]}{index}`"
    return f"{name} at {index}" if " of " in name else f"{name}{index}"


def _place(name: str, facts: Mapping[str, Any], shape: Sequence[int]) -> str:
    place, many = facts["index"], facts["of"]
    if shape and np.prod(shape) == many:
        return element(name, place, shape)
    return f"element {place} of {many:,} (counted from 0)" + f" of {name}" * bool(name)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
