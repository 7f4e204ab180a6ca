"""A wrong answer, as the harness tells of it, in a reader's words: one element of one output, at a size."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from common.checks.tolerance import EPS
from common.pairs.contract import Version
from common.pairs.pair import Pair

HARD = "very large and very small values, zeros, equal values, infinities and NaN"
WRITTEN = ("-inf", "NaN", "-0.0 and denormals")  # draws of common.checks.stress that write into some elements
SAID = re.compile(
    r"wrong answer at (size [^\s:,]+|the timed size)(?: on ([^:]+?))?(?:, with NaN in uninitialized memory)?: "
    r"(?:\[(\d+)\]: )?(.*)",
    re.DOTALL,
)
ELEMENT = re.compile(r"element (\d+) of (\d+) is (\S+), expected (\S+)")
ROUNDED = re.compile(r"(relative RMS error (\S+) in chunk .*): not (fp16|bf16), or partly wrong")
TYPES = {"fp16": "float16", "bf16": "bfloat16"}
ROUNDINGS = 16  # times the type's eps: what a long sum in 16 bits is off by
SPECIAL = re.compile(r"NaN or inf differ from the oracle's near element (\d+) of (\d+)")


@dataclass(frozen=True)
class Told:
    """What the harness says. `draw`: the hard values, if there are any; `output`: counts from 0; `rank`: which one."""

    rank: str
    size: str
    draw: str
    output: int | None
    what: str

    def where(self, pair: Pair) -> str:
        on = f" on {self.draw}" if self.draw else ""
        on += ", which this test writes into some elements of its inputs" if self.draw in WRITTEN else ""
        return f"{self.rank}wrong answer at size {sized(self.size, pair)}{on}"

    @property
    def rounded(self) -> str:
        """Why the errors of all elements are too large together, where each of them is small; else empty."""
        found = ROUNDED.fullmatch(self.what)
        if not found or float(found[2]) > ROUNDINGS * EPS[found[3]]:
            return ""
        helps = "multiply and add in float32, and approximate no function"
        return f"the error is as large as that of products or sums in {TYPES[found[3]]}: {helps}"

    def text(self, pair: Pair, shapes: Sequence[Sequence[int]] = ()) -> str:
        """The whole of it. `shapes`: of the right outputs, where they are known."""
        number, of = self.output or 0, len(shapes)
        name = output(pair, number, of) if of else "" if self.output is None else f"output {number + 1}"
        shape = shapes[number] if of else ()
        what = self.what.replace("the baseline's", "the right answer's")
        if found := ELEMENT.fullmatch(what):
            what = f"{_place(name, found, shape)} should be {found[4]}, got {found[3]}"
        elif found := SPECIAL.fullmatch(what):
            what = f"NaN or infinity is not where the right answer has it, from {_place(name, found, shape)} on"
        elif self.rounded:
            what = f"{name}: {what.partition(': not ')[0]}"
        elif self.output is not None:
            what = f"{name}: {what}"
        return f"{self.where(pair)}: {what}"


def told(reason: str) -> Told | None:
    """None if the reason is another one."""
    found = SAID.search(reason)
    if not found:
        return None
    at, draw, number, what = found.groups()
    size = "default" if at == "the timed size" else at.removeprefix("size ")
    return Told(reason[: found.start()], size, draw or "", None if number is None else int(number), what)


def sized(size: str, pair: Pair) -> str:
    """A size with its arguments: `check (rows 3, columns 127)`."""
    return f"{size} ({', '.join(f'{name} {value}' for name, value in pair.sizes[size].items())})"


def output(pair: Pair, number: int, of: int) -> str:
    """One of so many outputs: the only one, or as the solution's `reference` or `run` calls it, or by its number."""
    if of == 1:
        return "answer"
    named = (names[number] for names in _returned(pair.baseline) if len(names) == of)
    return next((f"`{name}`" for name in named if name), f"output {number + 1} of {of}")


def _returned(version: Version) -> list[list[str]]:
    """The names in the last `return` of `reference` and of `run`; empty for what is no name."""
    tree = ast.parse(version.path.read_text(encoding="utf-8"))
    functions = {node.name: node.body[-1] for node in tree.body if isinstance(node, ast.FunctionDef)}
    last = [functions[name] for name in ("reference", "run") if name in functions]
    return [
        [each.id if isinstance(each, ast.Name) else "" for each in node.value.elts]
        for node in last
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple)
    ]


def element(name: str, place: int, shape: Sequence[int]) -> str:
    """Of an output, its element at a place of the flat array, by its index."""
    index = f"[{', '.join(str(int(each)) for each in np.unravel_index(place, tuple(shape)))}]"
    if name.startswith("`"):
        return f"{name[:-1]}{index}`"
    return f"{name} at {index}" if " of " in name else f"{name}{index}"


def _place(name: str, found: re.Match[str], shape: Sequence[int]) -> str:
    place, many = int(found[1]), int(found[2])
    if shape and np.prod(shape) == many:
        return element(name, place, shape)
    return f"element {place} of {many:,} (counted from 0)" + f" of {name}" * bool(name)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
