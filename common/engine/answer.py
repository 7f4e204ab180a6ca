"""One answer of a candidate, and whether it is right."""

from dataclasses import dataclass, field
from typing import Any

from common.checks import guards, poisoned_memory
from common.checks.arrays import Tree, clone, difference, laziness, leaves, map_arrays, order_of, overlapping, tensors
from common.checks.compare_to_baseline import near
from common.checks.compare_to_reference import compare, same_form
from common.engine.candidates import Candidate
from common.engine.inputs import InputSet, harvest_grads, unwritable
from common.engine.stage import Stage
from common.isolation.pipe import LONG
from common.machine.clock import now
from common.record.outcome import Cause, Finding, Where


@dataclass(frozen=True)
class Answer:
    """A private copy of what a call returned, with its other properties that are compared.

    `returns`: the input whose memory it shares. `carries`: whether it requires gradients. `layout`: laziness and memory
    order of each array, by path. `alike`: whether the inputs had the baseline's memory layout.
    """

    tree: Tree
    grads: dict[str, Any] = field(default_factory=dict)
    returns: str = ""
    carries: bool = False
    layout: dict[str, tuple[str, str]] = field(default_factory=dict)
    alike: bool = True

    @classmethod
    def of(cls, answer: Tree, copy: Tree, mine: dict[str, Any], alike: bool) -> "Answer":
        layout = {path: (laziness(t), order_of(t)) for path, t in tensors(answer)}
        carries = any(getattr(leaf, "requires_grad", False) for _, leaf in leaves(answer))
        return cls(copy, clone(harvest_grads(mine)), overlapping(unwritable(mine), answer), carries, layout, alike)


@dataclass(frozen=True)
class Reference:
    """The oracle's answer (its leading `rows`, if given) and the baseline's answer."""

    tree: Tree
    rows: int | None
    base: Answer

    def differs(self, one: Candidate, out: Tree, usual: Tree = None, pooled: bool = True) -> Finding | None:
        """How an answer differs from this one; None if it is right. `pooled`: also compare errors of many values."""
        if one.differs:
            return same_form(out, self.base.tree)
        model = leading(self.base.tree, self.rows) if pooled else None
        custom, head = (one.precision, one.custom), leading(usual, self.rows)
        problem = compare(leading(out, self.rows), self.tree, model, *custom, head)
        if self.rows and not problem:  # only the baseline's answer has the other rows
            problem = compare(out, self.base.tree, None, *custom, usual)
        return problem

    def mismatch(self, one: Candidate, answer: Answer, usual: Tree = None, pooled: bool = True) -> Finding | None:
        """As `differs`, and the gradients, which are a part of the answer, must equal the baseline's."""
        problem = self.differs(one, answer.tree, usual, pooled)
        if problem or one.is_library:
            return problem
        if answer.grads.keys() != self.base.grads.keys():
            named = [", ".join(sorted(grads)) or "no input" for grads in (answer.grads, self.base.grads)]
            return Finding(Cause.OTHER_GRADIENTS, {"names": named[0], "expected": named[1]})
        if not self.base.grads:
            return None
        problem = compare(answer.grads, self.base.grads, self.base.grads, one.precision, one.custom)
        return problem and problem.at(gradient=True)


def leading(tree: Tree, rows: int | None) -> Tree:
    return map_arrays(lambda x: x[:rows], tree) if rows else tree


def fresh_answer(
    stage: Stage, one: Candidate, inputs: InputSet, other: InputSet, base: Answer | None = None, under: str = ""
) -> Answer | None:
    """One untimed setup and call, with poisoned outputs; None if it raised. `base`: the baseline's answer.

    Under "filled" uninitialized memory holds NaN, and a version with a `setup` is called twice: the second call finds
    what the first one left. Under "few" a kernel has few programs, on any machine. A candidate is disqualified if it
    changes its inputs, or returns a part of them and the baseline does not.
    """
    mine, filled = inputs.by_label[one.label], under == "filled"

    def action() -> Answer:
        guards.poison_outputs(mine)
        if one.is_library and one.label not in stage.first_s:
            stage.progress.say(f"first call of {one.label}", LONG)
        begin = now()
        few = poisoned_memory.few_programs(one.has_kernel and under == "few")
        with poisoned_memory.filled_memory() if filled else few:
            call = one.bind(mine, one.prepared(other.by_label[one.label], mine))
            stage.ranks.stagger(stage.rng)
            out = call()
            copy = clone(out)
        stage.first_s.setdefault(one.label, now() - begin)
        shortened = difference(mine, {name: call.keywords[name] for name in mine})
        stage.disqualify(one.label, Finding(Cause.RESHAPED_INPUT, {"how": shortened}) if shortened else None)
        answer = Answer.of(out, copy, mine, one.label in inputs.shared)
        guards.poison_answer(out, mine)
        if filled and one.setup:
            guards.poison_outputs(mine)
            problem = near(call(), copy, one.precision, one.custom)
            stage.disqualify(one.label, problem and problem.at(where=Where.AGAIN.value))
            harvest_grads(mine)
        return answer

    answer: Answer | None = stage.attempt(one.label, action)
    if found := inputs.violation():
        inputs.restore()
        stage.disqualify(one.label, Finding(Cause.CHANGED_INPUT, {"name": found[0]}))
    if answer:
        stage.disqualify(one.label, _left_to_do(answer, base or answer, one.is_library))
    return answer


def _left_to_do(answer: Answer, base: Answer, is_library: bool) -> Finding | None:
    """What an answer leaves to its reader and the baseline's does not; None if nothing.

    Another memory order is allowed if the inputs have another order: that is then the lesson.
    """
    if answer.returns and not base.returns:
        return Finding(Cause.RETURNS_INPUT, {"name": answer.returns})
    if base.carries and not answer.carries:
        return Finding(Cause.DROPS_GRADIENTS)
    for path, (lazy, order) in answer.layout.items():
        theirs = base.layout.get(path, ("", order))
        if lazy and not theirs[0]:
            return Finding(Cause.LAZY_ANSWER, {"kind": lazy})
        if not is_library and answer.alike and order not in ("contiguous", theirs[1]):
            return Finding(Cause.MEMORY_ORDER, {"order": order, "expected": theirs[1]})
    return None
