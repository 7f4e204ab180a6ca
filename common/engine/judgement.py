"""A candidate's answer, and whether it is right; every candidate's answers: a wrong one disqualifies."""

from dataclasses import dataclass, field, replace
from typing import Any

from common.checks import guards, poisoned_memory
from common.checks.arrays import Tree, clone, difference, laziness, leaves, map_arrays, order_of, overlapping, tensors
from common.checks.compare_to_baseline import Errors, drift, near, oracle_errors
from common.checks.compare_to_reference import blind_spot, compare, same_form
from common.engine.candidates import Candidate, oracle, oracle_rows
from common.engine.inputs import InputSet, harvest_grads, unwritable
from common.engine.stage import Stage
from common.isolation.pipe import LONG
from common.machine.clock import now
from common.record.outcome import Cause, Finding, Where

Facts = dict[str, Any]
Findings = dict[str, Finding]  # by label
AT_TIMED: Facts = {"where": Where.TIMED.value}


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
        return problem and problem.with_facts(gradient=True)


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
            stage.disqualify(one.label, problem and problem.with_facts(where=Where.AGAIN.value))
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


def truth_of(stage: Stage, inputs: InputSet, other: InputSet) -> tuple[Tree, int | None]:
    """(The oracle's answer on these inputs, its leading rows.) An invalid oracle disqualifies the baseline."""
    truth, rows = None, oracle_rows(stage.job.pair.baseline)
    with stage.fitting(stage.job.size):
        truth = oracle(stage.candidates[0], rows, inputs.base, other.base, stage.ranks)
    return truth, rows


def judge_all(
    stage: Stage, inputs: InputSet, other: InputSet, where: Facts, libraries: bool = True, once: bool = False
) -> Findings:
    """Judge every candidate against the oracle, then with uninitialized memory filled. `libraries`: judge these, too.

    `once`: versions are called only with memory filled. Returns label -> wrong answers that would have passed.
    """
    with stage.progress.spending("verify"):
        truth, rows = truth_of(stage, inputs, other)
        base = fresh_answer(stage, stage.candidates[0], inputs, other, under="few")
        if base is None:
            return {}
        right = Reference(truth, rows, base)
        for each in stage.judged(libraries)[: 1 if once else None]:
            answer = base if each.label == "baseline" else fresh_answer(stage, each, inputs, other, base, "few")
            judge_answer(stage, each, answer, right, where)
        blind = blind_spots(stage, right, inputs, other, libraries)
        where = {**where, "filled": True}
        for each in stage.judged(libraries):
            judge_answer(stage, each, fresh_answer(stage, each, inputs, other, base, "filled"), right, where)
    return blind


def blind_spots(stage: Stage, right: Reference, inputs: InputSet, other: InputSet, libraries: bool) -> Findings:
    """Label -> wrong answers that would pass; empty if none would."""
    stale = fresh_answer(stage, stage.candidates[0], other, inputs)
    if stale is None:
        return {}
    base, wrong = (leading(tree, right.rows) for tree in (right.base.tree, stale.tree))
    judged = [each for each in stage.judged(libraries) if not each.differs]
    found = {each.label: blind_spot(right.tree, base, wrong, each.precision, each.custom) for each in judged}
    return {label: why for label, why in found.items() if why}


def judge_answer(stage: Stage, one: Candidate, answer: Answer | None, right: Reference, where: Facts) -> None:
    """Disqualify a candidate whose answer is wrong. `where`: facts of it (outcome.Where)."""
    if answer and one.label not in stage.disqualified:
        problem = right.mismatch(one, answer)
        stage.disqualify(one.label, problem and problem.with_facts(**where))


def judge_timed(
    stage: Stage, inputs: InputSet, other: InputSet, answers: dict[str, Tree], first: bool
) -> dict[str, Errors]:
    """Judge the timed answers of a round against the oracle. Returns the errors of the `first`, by label."""
    with stage.progress.spending("verify"):
        truth, rows = truth_of(stage, inputs, other)
        if not stage.remaining or "baseline" not in answers:
            return {}
        right = Reference(truth, rows, Answer(answers["baseline"]))
        for each in stage.judged():
            if each.label in answers:
                judge_answer(stage, each, Answer(answers[each.label]), right, AT_TIMED)
        if not first:
            return {}
        for label, why in blind_spots(stage, right, inputs, other, libraries=True).items():
            stage.disqualify(label, why.with_facts(check=f"the timed size {stage.job.size}"))
        for each in stage.judged(libraries=False):  # not libraries: torch.compile would compile again
            answer = fresh_answer(stage, each, inputs, other, under="filled")
            judge_answer(stage, each, answer and replace(answer, grads={}), right, {**AT_TIMED, "filled": True})
        right_ones = [each.label for each in stage.judged() if each.label in answers and not each.differs]
        return {label: oracle_errors(leading(answers[label], rows), truth) for label in right_ones}


def compare_round(stage: Stage, answers: dict[str, Tree], inputs: InputSet, errors: Errors) -> bool:
    """Compare the timed answers of a round with the baseline's; with its `errors` also as a whole, not only by element.

    Returns True if they prove nothing because inputs were changed.
    """
    if "baseline" not in answers:
        return False
    with stage.progress.spending("verify"):
        wrong = dict[str, Finding | None]()
        for each in stage.remaining:
            if each.label in answers and each.label != "baseline" and not each.differs:
                both, custom = (answers[each.label], answers["baseline"]), (each.precision, each.custom)
                wrong[each.label] = near(*both, *custom) or drift(*both, errors, *custom)
        if stage.ranks.any(any(wrong.values())) and blame(stage, inputs):
            return True
        for label, problem in wrong.items():
            stage.disqualify(label, problem and problem.with_facts(where=Where.ROUND.value))
        stage.agree()
    return False


def blame(stage: Stage, *sets: InputSet) -> bool:
    """Whether inputs of the timed size were changed. Calls of each suspect on its own inputs show which one did it."""
    found = [(inputs, violation) for inputs in sets if (violation := inputs.violation())]
    everywhere = [violation for mine in stage.ranks.share([each for _, each in found]) for violation in mine]
    for path, suspects in everywhere:
        for each in [each for each in stage.judged() if each.label in suspects]:
            own = stage.inputs(stage.job.size)
            fresh_answer(stage, each, own, own)
        if stage.disqualified.keys().isdisjoint(suspects):
            facts = {"name": path, "who": " or ".join(suspects)}
            stage.disqualify("baseline", Finding(Cause.INPUT_CHANGED_BY, facts))
        stage.agree()
    for inputs, _ in found:
        inputs.restore()
    return bool(everywhere)
