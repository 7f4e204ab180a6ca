"""Groups of a pair's sizes: sizes that differ in only one number have an order, other sizes have none."""

from dataclasses import dataclass
from typing import Any

from common.record.result import PairResult


@dataclass(frozen=True)
class Group:
    """Results of a pair. `axis`: the only argument in which they differ, which orders them; empty if there is no order.

    `label`: the type and other words that they share ("float16"), and the axis.
    """

    label: str
    axis: str
    pairs: list[PairResult]


def groups(pairs: list[PairResult]) -> list[Group]:
    """The groups of a pair's results. In each family come first the results that one number orders, then the rest.

    A family has the same type, operation and so on: all arguments that are not numbers. An argument that a size does
    not
    name has the pair's default, which a record does not contain. Such a size forms a family only with sizes like it.
    """
    families: dict[str, list[PairResult]] = {}
    for pair in pairs:
        words = [_word(name, value) for name, value in pair.sizes.items() if type(value) is not int]
        families.setdefault(", ".join(sorted(words)), []).append(pair)
    return [group for name, family in families.items() for group in _ordered(name, family)]


def _word(name: str, value: Any) -> str:
    return f"{name} {value}" if isinstance(value, bool) else str(value)


def _ordered(name: str, family: list[PairResult]) -> list[Group]:
    """The groups of a family, the longest ordered group first; the rest of the family has no order."""
    axes = dict.fromkeys(key for pair in family for key, value in pair.sizes.items() if type(value) is int)
    found, left = list[Group](), list(family)
    while left:
        lines = [(axis, line) for axis in axes for line in _lines(left, axis)]
        axis, line = max(lines, key=lambda each: len(each[1]), default=("", left))
        found.append(Group(f"{name}: {axis}".removeprefix(": ").removesuffix(": "), axis, line))
        left = [pair for pair in left if pair not in line]
    return found


def _lines(pairs: list[PairResult], axis: str) -> list[list[PairResult]]:
    """Lists of results that differ only in this number, in ascending order of it."""
    alike: dict[str, list[PairResult]] = {}
    for pair in [pair for pair in pairs if axis in pair.sizes]:
        rest = sorted((key, value) for key, value in pair.sizes.items() if key != axis)
        alike.setdefault(repr(rest), []).append(pair)
    lines = [sorted(line, key=lambda pair: pair.sizes[axis]) for line in alike.values()]
    return [line for line in lines if len({pair.sizes[axis] for pair in line}) > 1]
