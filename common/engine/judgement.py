"""Compare every candidate's answers with the right ones; a wrong answer disqualifies."""

from dataclasses import replace
from typing import Any

from common.checks.arrays import Tree
from common.checks.compare_to_baseline import Errors, drift, near, oracle_errors
from common.checks.compare_to_reference import blind_spot
from common.engine.answer import Answer, Reference, fresh_answer, leading
from common.engine.candidates import Candidate, oracle, oracle_rows
from common.engine.inputs import InputSet
from common.engine.stage import Stage
from common.record.outcome import Cause, Finding, Where

Facts = dict[str, Any]
Findings = dict[str, Finding]  # by label
AT_TIMED: Facts = {"where": Where.TIMED.value}


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
        stage.disqualify(one.label, problem and problem.at(**where))


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
            stage.disqualify(label, why.at(check=f"the timed size {stage.job.size}"))
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
            stage.disqualify(label, problem and problem.at(where=Where.ROUND.value))
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
