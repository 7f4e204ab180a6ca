"""Reference answers to inputs that are a rounding away: where an answer jumps, and how far errors of inputs carry."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from common.checks import stress
from common.checks.arrays import Tree, as_tensor, clone, map_arrays, tensors
from common.engine.candidates import Disqualified, reference_answer, reference_rows
from common.engine.inputs import InputSet
from common.engine.stage import Stage

# (seed, sign) of roundings of the inputs; the first is none
ROUNDINGS = [(0, 0), (1, 1), (1, -1), (2, 1), (2, -1)]


def with_values(tree: Tree, source: Tree) -> Tree:
    """A copy of a tree with the source's values, where they have the same place and shape."""
    copy, values = clone(tree), dict(tensors(source))
    for path, t in tensors(copy):
        if path in values and values[path].shape == t.shape:
            t.copy_(values[path])
    return copy


def _unless_float(x: Any) -> Any:
    """An array of integers or booleans as it is, else None."""
    return None if as_tensor(x).is_floating_point() else x


def rounding_neighbours(
    stage: Stage, inputs: InputSet, other: InputSet, base: Callable[[], Tree]
) -> Callable[[], list[Tree]]:
    """Computes, when it is first called, the reference answers to inputs that are a rounding away from these.

    States are those that were drawn: by then calls have changed them, and the answer to such a state is another call's.
    Without a `reference` the integers of `base()`, the baseline's answer in the inputs' own type, are as right. None in
    a group of ranks, which would have to compute them in step.
    """

    @cache
    def neighbours() -> list[Tree]:
        baseline, arguments = stage.job.pair.baseline, inputs.prepare("baseline")
        answers = [] if "reference" in baseline.functions else [map_arrays(_unless_float, base())]
        for seed, sign in ROUNDINGS if stage.ranks.count == 1 else ():
            with suppress(RuntimeError, ValueError, Disqualified):  # outside of the domain, or of the memory
                near = stress.perturb_by_roundings(arguments, seed, sign)
                answers.append(reference_answer(stage.candidates[0], reference_rows(baseline), near, other.base))
        return answers

    return neighbours
