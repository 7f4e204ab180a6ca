"""One answer of a candidate, and whether it is the right one."""

from dataclasses import dataclass, field
from typing import Any

from common.checks import conditions, guards
from common.checks.arrays import Tree, clone, difference, laziness, leaves, map_arrays, order_of, overlapping, tensors
from common.checks.comparison import compare, same_form
from common.checks.nearness import near
from common.engine.candidates import Candidate
from common.engine.inputs import InputSet, harvest_grads, unwritable
from common.engine.session import Session
from common.machine.clock import now


@dataclass(frozen=True)
class Answer:
    """A private copy of what a call has returned, and what of it others are compared with besides its values.

    `returns`: the input whose memory it shares. `carries`: does it require gradients? `layout`: laziness and order of
    each array, by path. `alike`: did the inputs lie in memory as the baseline's?
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
class Truth:
    """The oracle's answer, of leading `rows`, and the baseline's."""

    tree: Tree
    rows: int | None
    base: Answer

    def differs(self, one: Candidate, out: Tree, usual: Tree = None, pooled: bool = True) -> str:
        """How an answer is not this one; empty if it is. `pooled`: the errors of many values are compared, too."""
        if one.differs:
            return same_form(out, self.base.tree)
        model = leading(self.base.tree, self.rows) if pooled else None
        custom, head = (one.precision, one.custom), leading(usual, self.rows)
        problem = compare(leading(out, self.rows), self.tree, model, *custom, head)
        if self.rows and not problem:  # beyond them, only the baseline's answer can tell
            problem = compare(out, self.base.tree, None, *custom, usual)
        return problem

    def condemns(self, one: Candidate, answer: Answer, usual: Tree = None, pooled: bool = True) -> str:
        """As `differs`; and its gradients, which are a part of it, have to be the baseline's."""
        problem = self.differs(one, answer.tree, usual, pooled)
        if problem or one.is_library:
            return problem
        if answer.grads.keys() != self.base.grads.keys():
            named = [", ".join(sorted(grads)) or "no input" for grads in (answer.grads, self.base.grads)]
            return f"leaves gradients in {named[0]}, the baseline in {named[1]}"
        if not self.base.grads:
            return ""
        problem = compare(answer.grads, self.base.grads, self.base.grads, one.precision, one.custom)
        return problem and f"gradient of {problem}"


def leading(tree: Tree, rows: int | None) -> Tree:
    return map_arrays(lambda x: x[:rows], tree) if rows else tree


def fresh_answer(
    session: Session, one: Candidate, inputs: InputSet, other: InputSet, base: Answer | None = None, under: str = ""
) -> Answer | None:
    """One untimed set-up and call, from poisoned outputs; None if it raised. `base`: the baseline's answer.

    Under "filled" uninitialized memory holds NaN, and after a set-up there is a second call, which finds what the
    first has left; under "few" a kernel of its own has few programs, whatever the machine. A candidate that changes its
    inputs, or returns a part of them where the baseline does not, is out.
    """
    mine, filled = inputs.by_label[one.label], under == "filled"

    def action() -> Answer:
        guards.poison_outputs(mine)
        begin = now()
        with conditions.filled_memory() if filled else conditions.few_programs(one.has_kernel and under == "few"):
            call = one.bind(mine, one.prepared(other.by_label[one.label], mine))
            out = call()
            copy = clone(out)
        session.first_s.setdefault(one.label, now() - begin)
        shortened = difference(mine, {name: call.keywords[name] for name in mine})
        session.disqualify(one.label, shortened and f"changed its input: it {shortened}")
        answer = Answer.of(out, copy, mine, one.label in inputs.shared)
        guards.poison_answer(out, mine)
        if filled and one.setup:
            guards.poison_outputs(mine)
            problem = near(call(), copy, one.precision, one.custom)
            session.disqualify(one.label, problem and f"wrong answer where it is called again: {problem}")
            harvest_grads(mine)
        return answer

    answer: Answer | None = session.attempt(one.label, action)
    if found := inputs.violation():
        inputs.restore()
        session.disqualify(one.label, f"changed its input `{found[0]}`")
    if answer:
        session.disqualify(one.label, _left_to_do(answer, base or answer, one.is_library))
    return answer


def _left_to_do(answer: Answer, base: Answer, is_library: bool) -> str:
    """What an answer leaves to whoever reads it, where the baseline's does not; empty if nothing.

    Another order in memory is fine where the inputs lie in another order: that is its lesson.
    """
    if answer.returns and not base.returns:
        return f"returns memory of its input `{answer.returns}`"
    if base.carries and not answer.carries:
        return "its answer carries no gradients, the baseline's does"
    for path, (lazy, order) in answer.layout.items():
        theirs = base.layout.get(path, ("", order))
        if lazy and not theirs[0]:
            return f"returns {lazy}, the baseline a whole one"
        if not is_library and answer.alike and order not in ("contiguous", theirs[1]):
            return f"its answer lies in memory by {order}, the baseline's {theirs[1]}: the copy is left to its reader"
    return ""
