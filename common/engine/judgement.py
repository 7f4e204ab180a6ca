"""A candidate's answer, and whether it is right; every candidate's answers: a wrong one disqualifies."""

from dataclasses import replace
from typing import Any

from common.checks import guards
from common.checks.ambiguous_answers import resolve
from common.checks.arrays import Tree, clone, difference, merge_numbers, tensors
from common.checks.compare_to_baseline import Errors, compare_elements, drift, reference_errors
from common.checks.compare_to_reference import blind_spot, compare_forms
from common.checks.kernel_memory import BadAccess, Waits, cause_of
from common.checks.poisoned_memory import FEW, FILLED, USUAL, Condition, would_compile
from common.engine.candidates import Candidate, reference_answer, reference_rows
from common.engine.inputs import InputSet, harvest_grads
from common.engine.reference import Answer, Reference, leading_rows
from common.engine.rounding_neighbours import rounding_neighbours, with_values
from common.engine.stage import Stage
from common.isolation.pipe import MAY_COMPILE
from common.machine.clock import now
from common.record.outcome import Cause, Finding, Where

Facts = dict[str, Any]
Findings = dict[str, Finding]  # by label
AT_TIMED: Facts = {"where": Where.TIMED.value}


def fresh_answer(
    stage: Stage,
    candidate: Candidate,
    inputs: InputSet,
    other: InputSet,
    base: Answer | None = None,
    condition: Condition = USUAL,
) -> Answer | None:
    """One untimed setup and call, with poisoned outputs; None if it raised. `base`: the baseline's answer.

    With filled memory a version that has a `setup` is called twice: the second call finds what the first one left. A
    candidate is disqualified if it changes its inputs, or returns a part of them and the baseline does not.

    Nothing is filled where torch.compile would compile anew for it: what it compiles allocates by itself.
    """
    arguments = inputs.by_label[candidate.label]

    def action(held: Condition) -> Answer:
        inputs.prepare(candidate.label)
        if candidate.is_library and candidate.label not in stage.first_s:
            stage.progress.report(f"first call of {candidate.label}", MAY_COMPILE)
        begin = now()
        with held.hold(candidate.has_kernel) as watch:
            call = candidate.bind(arguments, candidate.run_setup(other.by_label[candidate.label], arguments))
            stage.ranks.stagger(stage.rng)
            out = call()
            copy = merge_numbers(clone(out))
        stage.first_s.setdefault(candidate.label, now() - begin)
        stage.grids.setdefault(candidate.label, []).append((watch.programs, watch.lanes))
        change = difference(arguments, {name: call.keywords[name] for name in arguments})
        stage.disqualify(candidate.label, Finding(Cause.RESHAPED_INPUT, {"how": change}) if change else None)
        same_layout = candidate.label in inputs.shared_labels
        answer = Answer.from_call(out, copy, arguments, same_layout, stage.candidates[0].has_gradients)
        answer = replace(answer, is_filled=held.is_filled)
        guards.poison_answer(out, arguments)
        if condition.is_filled and candidate.setup:
            inputs.prepare(candidate.label)
            problem = compare_elements(merge_numbers(call()), copy, candidate.precision, candidate.custom)
            stage.disqualify(candidate.label, problem and problem.with_facts(where=Where.AGAIN.value))
            harvest_grads(arguments)
        return answer

    def action_in_some_order() -> Answer | None:
        try:
            return action(condition)
        except Exception as error:  # noqa: BLE001 (raised again there)
            again = _after_error(error, condition)
            return action(again) if again else None

    answer: Answer | None = stage.attempt(candidate.label, action_in_some_order)
    if violation := inputs.violation():
        inputs.restore()
        stage.disqualify(candidate.label, Finding(Cause.CHANGED_INPUT, {"name": violation[0]}))
    if answer:
        stage.disqualify(candidate.label, _unfinished_work(answer, base or answer, candidate.is_library))
    return answer


def _after_error(error: Exception, condition: Condition) -> Condition | None:
    """In which condition a call that raised is made again; None if this error says nothing. Else raises it."""
    if condition.is_filled and would_compile(error):
        return replace(condition, is_filled=False)
    if condition.may_refuse and not cause_of(error, BadAccess):
        return None
    if condition.order and cause_of(error, Waits):
        return condition.in_order  # it waits for programs before it, which a GPU starts first
    raise error


def _unfinished_work(answer: Answer, base: Answer, is_library: bool) -> Finding | None:
    """What an answer leaves to its reader and the baseline's does not; None if nothing.

    Another memory order is allowed if the inputs have another order: that is then the lesson.
    """
    if answer.returned_input and not base.returned_input:
        return Finding(Cause.RETURNS_INPUT, {"name": answer.returned_input})
    if base.requires_grad and not answer.requires_grad:
        return Finding(Cause.DROPS_GRADIENTS)
    for path, (lazy, order) in answer.layout.items():
        base_layout = base.layout.get(path, ("", order))
        if lazy and not base_layout[0]:
            return Finding(Cause.LAZY_ANSWER, {"kind": lazy})
        if not is_library and answer.same_layout and order not in ("contiguous", base_layout[1]):
            return Finding(Cause.MEMORY_ORDER, {"order": order, "expected": base_layout[1]})
    return None


def expected_answer(stage: Stage, inputs: InputSet, other: InputSet) -> tuple[Tree, int | None]:
    """(The reference answer on these inputs, its leading rows.) An invalid reference disqualifies the baseline."""
    expected, rows = None, reference_rows(stage.job.pair.baseline)
    inputs.prepare("baseline")
    with stage.memory_check(stage.job.size):
        expected = reference_answer(stage.candidates[0], rows, inputs.base, other.base, stage.ranks)
    return expected, rows


def judge_all(
    stage: Stage, inputs: InputSet, other: InputSet, where: Facts, libraries: bool = True, only_filled: bool = False
) -> tuple[Findings, Tree | None]:
    """Judge every candidate against the reference, then with uninitialized memory filled. `libraries`: also these.

    `only_filled`: all are called only with memory filled. Returns label -> wrong answers that would have passed; and
    the baseline's answer, None if it raised.
    """
    conditions = (FILLED,) if only_filled else (FEW, FILLED)
    with stage.progress.spending("verify"):
        expected, rows = expected_answer(stage, inputs, other)
        base = fresh_answer(stage, stage.candidates[0], inputs, other, condition=conditions[0])
        if base is None:
            return {}, None
        near = rounding_neighbours(stage, inputs, other, lambda: base.tree)
        reference = Reference(expected, rows, base, inputs.base, near)
        for condition in conditions:
            for candidate in stage.candidates_to_judge(libraries):
                is_called = candidate.label == "baseline" and condition is conditions[0]
                answer = base if is_called else fresh_answer(stage, candidate, inputs, other, base, condition)
                judge_answer(stage, candidate, answer, reference, where)
        return blind_spots(stage, reference, inputs, other, libraries), base.tree


def blind_spots(stage: Stage, reference: Reference, inputs: InputSet, other: InputSet, libraries: bool) -> Findings:
    """Label -> wrong answers that would pass; empty if none would."""
    base = leading_rows(reference.base.tree, reference.rows)
    wrong = _stale_answer(stage, base, inputs, other)
    if wrong is None:
        return {}
    spots: Findings = {}
    for candidate in stage.candidates_to_judge(libraries):
        if not candidate.answer_differs:
            spot = blind_spot(reference.tree, base, wrong, candidate.precision, candidate.custom)
            spots |= {candidate.label: spot} if spot else {}
    return spots


def _stale_answer(stage: Stage, base: Tree, inputs: InputSet, other: InputSet) -> Tree | None:
    """The baseline's answer to the other inputs; None if it raised.

    Where its kernel runs in the interpreter, which takes seconds: the reference answer, in the form of `base`.
    """
    baseline, rows = stage.candidates[0], reference_rows(stage.job.pair.baseline)
    if stage.job.device == "cpu" and baseline.has_kernel and hasattr(baseline.module, "reference"):
        expected, _ = stage.attempt("", expected_answer, stage, other, inputs) or (None, rows)
        shapes = [{path: t.shape for path, t in tensors(tree)} for tree in (base, expected)]
        if shapes[0] == shapes[1]:
            return with_values(base, expected)
    stale = fresh_answer(stage, baseline, other, inputs)
    return stale and leading_rows(stale.tree, rows)


def judge_answer(stage: Stage, candidate: Candidate, answer: Answer | None, reference: Reference, where: Facts) -> None:
    """Disqualify a candidate whose answer is wrong. `where`: facts of it (outcome.Where)."""
    if answer and candidate.label not in stage.disqualified:
        problem, filled = reference.mismatch(candidate, answer), {"filled": True} if answer.is_filled else {}
        stage.disqualify(candidate.label, problem and problem.with_facts(**where, **filled))


def judge_timed(
    stage: Stage, inputs: InputSet, other: InputSet, answers: dict[str, Tree], first: bool
) -> dict[str, Errors]:
    """Judge the timed answers of a round against the reference. Returns the errors of the `first`, by label."""
    with stage.progress.spending("verify"):
        expected, rows = expected_answer(stage, inputs, other)
        if not stage.remaining or "baseline" not in answers:
            return {}
        near = rounding_neighbours(stage, inputs, other, lambda: answers["baseline"])
        reference = Reference(expected, rows, Answer(answers["baseline"]), inputs.base, near)
        for candidate in stage.candidates_to_judge():
            if candidate.label in answers:
                judge_answer(stage, candidate, Answer(answers[candidate.label]), reference, AT_TIMED)
        if not first:
            return {}
        for label, finding in blind_spots(stage, reference, inputs, other, libraries=True).items():
            stage.disqualify(label, finding.with_facts(check=f"the timed size {stage.job.size}"))
        for candidate in stage.candidates_to_judge(libraries=False):  # not libraries: torch.compile would compile again
            answer = fresh_answer(stage, candidate, inputs, other, condition=FILLED)
            answer = answer and replace(answer, grads={})
            judge_answer(stage, candidate, answer, reference, AT_TIMED)
        labels = [candidate.label for candidate in stage.candidates_to_judge() if not candidate.answer_differs]
        return {
            label: reference_errors(leading_rows(answers[label], rows), expected)
            for label in labels
            if label in answers
        }


def compare_round(stage: Stage, answers: dict[str, Tree], inputs: InputSet, errors: Errors) -> bool:
    """Compare the timed answers of a round with the baseline's; with its `errors` also as a whole, not only by element.

    Returns True if they prove nothing because inputs were changed.
    """
    if "baseline" not in answers:
        return False
    with stage.progress.spending("verify"):
        problems = dict[str, Finding | None]()
        near = rounding_neighbours(stage, inputs, inputs, lambda: answers["baseline"])
        for candidate in stage.remaining:
            if candidate.label in answers and candidate.label != "baseline" and not candidate.answer_differs:
                pair, custom = (answers[candidate.label], answers["baseline"]), (candidate.precision, candidate.custom)
                problem = compare_elements(*pair, *custom) or drift(*pair, errors, *custom)
                if problem and not compare_forms(*pair):
                    pair = (resolve(*pair, near(), inputs.base, *custom), answers["baseline"])
                    problem = compare_elements(*pair, *custom) or drift(*pair, errors, *custom)
                problems[candidate.label] = problem
        if stage.ranks.any(any(problems.values())) and blame(stage, inputs):
            return True
        for label, problem in problems.items():
            stage.disqualify(label, problem and problem.with_facts(where=Where.ROUND.value))
        stage.agree()
    return False


def blame(stage: Stage, *sets: InputSet) -> bool:
    """Whether inputs of the timed size were changed. Calls of each suspect on its own inputs show which one did it."""
    violations = [(inputs, violation) for inputs in sets if (violation := inputs.violation())]
    by_rank = stage.ranks.share([violation for _, violation in violations])
    all_violations = [violation for rank_violations in by_rank for violation in rank_violations]
    for path, suspects in all_violations:
        for candidate in [candidate for candidate in stage.candidates_to_judge() if candidate.label in suspects]:
            fresh_inputs = stage.inputs(stage.job.size)
            fresh_answer(stage, candidate, fresh_inputs, fresh_inputs)
        if stage.disqualified.keys().isdisjoint(suspects):
            facts = {"name": path, "who": " or ".join(suspects)}
            stage.disqualify("baseline", Finding(Cause.INPUT_CHANGED_BY, facts))
        stage.agree()
    for inputs, _ in violations:
        inputs.restore()
    return bool(all_violations)
