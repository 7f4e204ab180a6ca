"""A candidate's answer, the reference answer, and how the first differs from the second."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from common.checks.ambiguous_answers import resolve
from common.checks.arrays import Tree, clone, laziness, leaves, map_arrays, memory_order, overlap_path, tensors
from common.checks.compare_to_reference import LEAST_CHUNK, compare, compare_forms
from common.engine.candidates import Candidate
from common.engine.inputs import harvest_grads, read_only_inputs
from common.engine.rounding_neighbours import with_values
from common.record.outcome import Cause, Finding


@dataclass(frozen=True)
class Answer:
    """A private copy of what a call returned, with its other properties that are compared.

    `returned_input`: the input whose memory it shares. `layout`: laziness and memory order of each array, by path.
    `same_layout`: whether the inputs had the baseline's memory layout. `is_filled`: whether uninitialized memory held
    NaN.
    """

    tree: Tree
    grads: dict[str, Any] = field(default_factory=dict)
    returned_input: str = ""
    requires_grad: bool = False
    layout: dict[str, tuple[str, str]] = field(default_factory=dict)
    same_layout: bool = True
    is_filled: bool = False

    @classmethod
    def from_call(
        cls, answer: Tree, copy: Tree, arguments: dict[str, Any], same_layout: bool, with_gradients: bool
    ) -> "Answer":
        layout = {path: (laziness(t), memory_order(t)) for path, t in tensors(answer)}
        requires_grad = any(getattr(leaf, "requires_grad", False) for _, leaf in leaves(answer)) and with_gradients
        returned_input, grads = overlap_path(read_only_inputs(arguments), answer), clone(harvest_grads(arguments))
        return cls(copy, grads if with_gradients else {}, returned_input, requires_grad, layout, same_layout)


@dataclass(frozen=True)
class Reference:
    """The reference answer (its leading `rows`, if given) and the baseline's answer.

    `neighbours` computes further answers, to `inputs` that are a rounding away (ambiguous_answers.py).
    """

    tree: Tree
    rows: int | None
    base: Answer
    inputs: Tree = None
    neighbours: Callable[[], list[Tree]] = list

    def _value_mismatch(
        self, candidate: Candidate, out: Tree, scale_answer: Tree = None, pooled: bool = True
    ) -> Finding | None:
        """How an answer differs from this one; None if it is right. `pooled`: also compare errors of many values."""
        if candidate.answer_differs:
            return compare_forms(out, self.base.tree)
        model = leading_rows(self.base.tree, self.rows) if pooled else None
        custom, head = (candidate.precision, candidate.custom), leading_rows(scale_answer, self.rows)
        leading = leading_rows(out, self.rows)
        problem = compare(leading, self.tree, model, *custom, head)
        if problem:
            leading = resolve(leading, self.tree, self.neighbours(), self.inputs, *custom)
            problem = compare(leading, self.tree, model, *custom, head)
        if problem and problem.cause == Cause.WRONG_RMS and problem.facts["of"] < LEAST_CHUNK:
            # the baseline's own error, of few values, may be small by luck
            models = [with_values(model, near) for near in self.neighbours()]
            problem = problem if all(compare(leading, self.tree, near, *custom, head) for near in models) else None
        if self.rows and not problem:  # only the baseline's answer has the other rows
            problem = compare(out, self.base.tree, None, *custom, scale_answer)
        return problem

    def mismatch(
        self, candidate: Candidate, answer: Answer, scale_answer: Tree = None, pooled: bool = True
    ) -> Finding | None:
        """As `_value_mismatch`, and the gradients, which are a part of the answer, must equal the baseline's."""
        problem = self._value_mismatch(candidate, answer.tree, scale_answer, pooled)
        if problem or candidate.is_library:
            return problem
        if answer.grads.keys() != self.base.grads.keys():
            names = [", ".join(sorted(grads)) or "no input" for grads in (answer.grads, self.base.grads)]
            return Finding(Cause.OTHER_GRADIENTS, {"names": names[0], "expected": names[1]})
        if not self.base.grads:
            return None
        problem = compare(answer.grads, self.base.grads, self.base.grads, candidate.precision, candidate.custom)
        return problem and problem.with_facts(gradient=True)


def leading_rows(tree: Tree, rows: int | None) -> Tree:
    return map_arrays(lambda x: x[:rows], tree) if rows else tree
