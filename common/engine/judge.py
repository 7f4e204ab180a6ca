"""Is an arm's answer right, and not obtained by cheating? An arm of which that is not so is disqualified."""

from typing import Any

from common.checks import conditions, guards
from common.checks.arrays import Tree, clone, difference, laziness, leaves, map_arrays, order_of, overlapping, tensors
from common.checks.comparison import blind_spot, compare, same_form
from common.checks.nearness import drift, near, rms_errors
from common.engine.arms import Invalid, LiveArm, oracle
from common.engine.inputs import InputSet, harvest_grads, unwritable
from common.engine.session import Session
from common.machine.clock import now


def judge_all(
    session: Session,
    inputs: InputSet,
    other: InputSet,
    where: str,
    answers: dict[str, Tree] | None = None,
    filled: bool = True,
    libraries: bool = True,
    once: bool = False,
) -> dict[str, str]:
    """Every arm against the oracle: by the answers given, or called here, then with uninitialized memory filled.

    Without the libraries, if so asked; and none is filled for that has given its answers timed: it was at the check
    size, and torch.compile would compile anew. `once`: no version is called but with memory filled. Returns label ->
    what wrong answer would have passed, empty if none.
    """
    if not session.remaining:
        return {}
    with session.spending("verify"):
        with session.fitting(session.job.size):
            try:
                truth, rows = oracle(session.job.pair.baseline, session.arms[0], inputs.base, other.base)
            except Invalid as error:
                session.disqualify(*error.args)
                return {}
        plain, blind = answers or {}, {}
        if answers:
            session.errors = rms_errors(leading(answers["baseline"], rows), truth)
        for arm in session.judged(libraries)[: 1 if once else None]:
            if arm.label not in plain:
                plain[arm.label] = fresh_answer(session, arm, inputs, other, filled=False, few=answers is None)
            judge_answer(session, arm, plain[arm.label], truth, plain["baseline"], rows, where)
        if not filled:
            return {}
        stale = fresh_answer(session, session.arms[0], other, inputs, filled=False)
        for arm in session.judged(libraries):
            if not arm.differs:
                base, wrong = (leading(tree, rows) for tree in (plain["baseline"], stale))
                blind[arm.label] = blind_spot(truth, base, wrong, arm.precision, arm.tolerance)
        for arm in session.judged(libraries and answers is None):
            answer = fresh_answer(session, arm, inputs, other, filled=True)
            judge_answer(
                session, arm, answer, truth, plain["baseline"], rows, f"{where} with uninitialized memory filled"
            )
        return blind


def judge_answer(
    session: Session, arm: LiveArm, out: Tree, truth: Tree, base: Tree, rows: int | None, where: str
) -> None:
    """Out with an arm whose answer is not as it should be."""
    problem = "" if arm.label in session.disqualified else wrong(session, arm, out, truth, base, rows)
    session.disqualify(arm.label, problem and f"wrong answer {where}: {problem}")


def wrong(
    session: Session, arm: LiveArm, out: Tree, truth: Tree, base: Tree, rows: int | None,
    usual: Tree = None, pooled: bool = True,
) -> str:  # fmt: skip
    """How an answer (its leading `rows`) is not the oracle's, or its gradients not the baseline's; empty if right.

    `pooled`: the errors of many values together are compared with the baseline's, too.
    """
    if arm.differs:
        problem = same_form(out, base)
    else:
        model = leading(base, rows) if pooled else None
        problem = compare(leading(out, rows), truth, model, arm.precision, arm.tolerance, leading(usual, rows))
        if rows and not problem:  # beyond them, only the baseline's answer can tell
            problem = compare(out, base, None, arm.precision, arm.tolerance, usual)
    return problem or ("" if arm.is_library else _grad_problem(arm, session.arms[0].grads))


def _grad_problem(arm: LiveArm, theirs: dict[str, Any]) -> str:
    """What is wrong with the gradients that a call left in its inputs, which are a part of its answer."""
    if arm.grads.keys() != theirs.keys():
        named = [", ".join(sorted(grads)) or "no input" for grads in (arm.grads, theirs)]
        return f"leaves gradients in {named[0]}, the baseline in {named[1]}"
    problem = compare(arm.grads, theirs, theirs, arm.precision, arm.tolerance) if theirs else ""
    return f"gradient of {problem}" if problem else ""


def leading(tree: Tree, rows: int | None) -> Tree:
    return map_arrays(lambda x: x[:rows], tree) if rows else tree


def fresh_answer(
    session: Session, arm: LiveArm, inputs: InputSet, other: InputSet, filled: bool, few: bool = False
) -> Tree:
    """One untimed set-up and call, from poisoned outputs; `filled`: uninitialized memory holds NaN, and after a set-up
    there is a second call, which finds what the first has left.

    `few`: a kernel of its own has few programs, whatever the machine.

    An arm that changes its inputs, or returns a part of them where the baseline does not, is out.
    """
    mine = inputs.by_arm[arm.label]

    def action() -> Tree:
        guards.poison_outputs(mine)
        begin = now()
        with conditions.filled_memory(filled), conditions.few_programs(arm.has_kernel and few):
            arm.prepare(other.by_arm[arm.label], mine)
            call = arm.bind(mine)
            answer = call()
            copy = clone(answer)
        shortened = difference(mine, {name: call.keywords[name] for name in mine})
        session.disqualify(arm.label, shortened and f"changed its input: it {shortened}")
        arm.compile_s = arm.compile_s or now() - begin
        note(arm, answer, mine)
        guards.poison_answer(answer, mine)
        if filled and arm.setup:
            guards.poison_outputs(mine)
            problem = near(call(), copy, arm.precision, arm.tolerance)
            session.disqualify(arm.label, problem and f"wrong answer where it is called again: {problem}")
            harvest_grads(mine)
        return copy

    answer = session.attempt(arm.label, action)
    if found := inputs.violation():
        inputs.restore()
        session.disqualify(arm.label, f"changed its input `{found[0]}`")
    session.disqualify(arm.label, _left_to_do(arm, session.arms[0]))
    if arm.returns and not session.arms[0].returns:
        session.disqualify(arm.label, f"returns memory of its input `{arm.returns}`")
    return answer


def note(arm: LiveArm, answer: Tree, mine: dict[str, Any]) -> None:
    """Of an answer, what others are compared with besides its values."""
    arm.layout = {path: (laziness(t), order_of(t)) for path, t in tensors(answer)}
    arm.carries = any(getattr(leaf, "requires_grad", False) for _, leaf in leaves(answer))
    arm.returns, arm.grads = overlapping(unwritable(mine), answer), clone(harvest_grads(mine))


def _left_to_do(arm: LiveArm, baseline: LiveArm) -> str:
    """What an answer leaves to whoever reads it, where the baseline's does not; empty if nothing.

    Another order in memory is fine where the arm's inputs lie in another order: that is its lesson.
    """
    if baseline.carries and not arm.carries:
        return "its answer carries no gradients, the baseline's does"
    for path, (lazy, order) in arm.layout.items():
        theirs = baseline.layout.get(path, ("", order))
        if lazy and not theirs[0]:
            return f"returns {lazy}, the baseline a whole one"
        if not arm.is_library and all(arm.shares.values()) and order not in ("contiguous", theirs[1]):
            return f"its answer lies in memory by {order}, the baseline's {theirs[1]}: the copy is left to its reader"
    return ""


def compare_round(session: Session, answers: dict[str, Tree], inputs: InputSet, closely: bool = False) -> None:
    """The timed answers of a round against the baseline's; `closely`: as a whole, too, not only each element."""
    if "baseline" not in answers:
        return
    with session.spending("verify"):
        wrong = {}
        for arm in session.remaining:
            if arm.label in answers and arm.label != "baseline" and not arm.differs:
                custom = arm.precision, arm.tolerance
                problem = near(answers[arm.label], answers["baseline"], *custom)
                if closely and not problem:
                    problem = drift(answers[arm.label], answers["baseline"], session.errors, *custom)
                wrong[arm.label] = problem
        if any(wrong.values()) and blame(session, inputs):
            return  # somebody changed the inputs: nobody's answer says anything
        for label, problem in wrong.items():
            session.disqualify(label, problem and f"wrong answer in a timed round, against the baseline's: {problem}")


def blame(session: Session, inputs: InputSet) -> bool:
    """Were inputs of the timed size changed? Then who did it is out: a call of each suspect on its own inputs tells."""
    if not (found := inputs.violation()):
        return False
    session.blamed += 1
    path, suspects = found
    for arm in [arm for arm in session.judged() if arm.label in suspects]:
        own = session.inputs(session.job.size)
        fresh_answer(session, arm, own, own, filled=False)
    if session.disqualified.keys().isdisjoint(suspects):
        session.disqualify("baseline", f"the input `{path}` was changed by {' or '.join(suspects)}")
    inputs.restore()
    return True
