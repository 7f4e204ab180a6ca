"""Check every version at the check sizes, on ordinary values and on stress draws."""

from contextlib import suppress
from typing import Any

from common.checks import guards, out_of_bounds, stress
from common.checks.arrays import Tree, clone, copy_into, tensors
from common.checks.comm_bytes import Sent
from common.checks.compare_to_reference import LEAST_CHUNK, compare
from common.engine.candidates import Candidate, count_costs, oracle, oracle_rows, weights
from common.engine.inputs import InputSet, harvest_grads, inputs_proper
from common.engine.judgement import Answer, Facts, Findings, Reference, fresh_answer, judge_all, leading
from common.engine.stage import Bench, DoesNotFit, Stage
from common.record.outcome import Cause, Finding, Where

UNIT = 16  # Triton compiles another kernel where numbers are multiples of 16
LEAST_SENT = 0.99  # of the useful minimum: a cost may be rounded


def check(bench: Bench) -> Bench:
    """Check every version at every `check` size; a check that zeros would pass at all of them proves nothing.

    A library is judged at the sizes where it is timed: elsewhere it does not matter, and torch.compile takes seconds
    per shape. If nothing is timed, it is judged at the first check size, but not on a CPU. Candidates that have all
    passed at an earlier size of a sweep are not checked again: the timed size is judged anyway.
    """
    if {each.label for each in bench.remaining} <= set(bench.job.verified):
        return bench
    with Stage(bench) as stage:
        _check(stage)
    return stage.end()


def _check(stage: Stage) -> None:
    out_of_bounds.enforce()
    sizes = stage.job.pair.check_sizes
    choices = [_choices(stage.job.pair.sizes[size]) for size in sizes]
    blind: Findings = {}
    for i, size in enumerate(sizes):
        stage.progress.checking(i / len(sizes))
        if len(stage.judged(libraries=False)) > 1:  # a version beside the baseline
            found = _check_size(stage, i, size, is_new=choices[i] not in choices[:i])
            blind = {label: why for label, why in found.items() if i == 0 or label in blind}
    stage.progress.checking(None)
    for label, why in blind.items():
        stage.disqualify(label, why.with_facts(check=f"size{'s' * (len(sizes) > 1)} {', '.join(sizes)}"))
    stage.agree()


def _check_size(stage: Stage, i: int, size: str, is_new: bool) -> Findings:
    """Check every version at the i-th size, then on its draws. Returns label -> wrong answers that would pass."""
    inputs = stage.inputs(size)
    if weights(inputs.base) and not any(tensors(inputs_proper(inputs.base))):
        stage.disqualify("baseline", Finding(Cause.ONLY_WEIGHTS))
        return {}
    other = stage.inputs(size)
    on_gpu = stage.job.device != "cpu"  # no kernel runs in the interpreter, which takes seconds
    libraries = i == 0 and on_gpu and not stage.job.timed
    where: Facts = {"where": Where.SIZE.value, "size": size}
    blind = judge_all(stage, inputs, other, where, libraries=libraries, once=i > 0 and not on_gpu)
    for label, problem in count_costs(stage.remaining, inputs.by_label)[1].items():
        stage.disqualify(label, problem)
    stage.agree()
    count_sent(stage, inputs, other)
    draws = _draws(i, is_new, inputs.pristine) if stage.job.stressed else []
    with stage.progress.spending("stress"):
        right = stage.attempt("", _answers, stage, inputs, other) if set(draws) & set(stress.FLAT) else None
        for n, draw in enumerate(draws):
            stage.progress.checking((i + n / len(draws)) / len(stage.job.pair.check_sizes))
            with inputs.stressed(draw) as is_there:
                if is_there:
                    flat = right.base.tree if right and draw in stress.FLAT else None
                    _judge(stage, inputs, other, {**where, "draw": draw}, flat)
    return blind


def _draws(i: int, is_new: bool, tree: Tree) -> list[str]:
    """All draws at the first size, one at each other size; the telling ones where a size chooses something new.

    Wide gaps also where all rows are whole units: elsewhere a version may read copies, which have no gaps.
    """
    meant = stress.meant_for(tree)
    if i == 0:
        return [*stress.STRIDES, *meant]
    in_turn = meant[i % len(meant) :][:1] if meant else ()
    is_whole = all(t.shape[-1] % UNIT == 0 for _, t in tensors(tree) if t.dim())
    return [*dict.fromkeys([*(stress.TELLING if is_new else ()), *(stress.STRIDES[1:] if is_whole else ()), *in_turn])]


def _choices(arguments: dict[str, Any]) -> str:
    """The arguments of a size that are not numbers (an operation, a type): each may have its own lines in a version."""
    return repr(sorted((name, value) for name, value in arguments.items() if type(value) not in (int, float)))


def check_one_less(stage: Stage) -> None:
    """Check at the timed size with its largest number less one, where a version may fail on the tail.

    Only if the baseline accepts that size and there is room for it.
    """
    arguments = stage.job.pair.sizes[stage.job.size]
    numbers = {name: value for name, value in arguments.items() if type(value) is int}
    if not stage.remaining or max(numbers.values(), default=0) < 2:
        return
    name = max(numbers, key=lambda each: numbers[each])
    less = {**arguments, name: numbers[name] - 1}
    with suppress(DoesNotFit, ValueError, RuntimeError, TypeError, AssertionError), stage.fitting(stage.job.size):
        less |= stage.ranks.place
        inputs = InputSet(stage.remaining, less, stage.job.device, stage.rng.randrange(2**31))
        _judge(stage, inputs, inputs, {"where": Where.LESS.value, "size": f"{name} = {less[name]}"})


def _judge(stage: Stage, inputs: InputSet, other: InputSet, where: Facts, usual: Tree = None) -> None:
    """Judge every version if the baseline agrees with the oracle, except versions whose files leave this draw out."""
    if not stage.remaining:
        return
    right: Reference | None = stage.attempt("", _answers, stage, inputs, other)
    if right is None:
        return
    if usual is None and sum(t.numel() for _, t in tensors(right.base.tree)) < LEAST_CHUNK:
        usual = right.tree  # too few values for an RMS error: each is judged alone
    baseline, mine = stage.candidates[0], inputs.by_label["baseline"]
    custom = baseline.precision, baseline.custom, leading(usual, right.rows)
    if stage.ranks.any(compare(leading(right.base.tree, right.rows), right.tree, None, *custom)):
        return
    draw = where.get("draw", "")
    pooled = draw not in stress.LARGE
    for each in stage.judged(libraries=False)[1:]:
        if draw in getattr(each.module, "STRESS", {}):
            continue
        answer = fresh_answer(stage, each, inputs, other, right.base, "few" if draw else "")
        if answer is None or each.label in stage.disqualified:
            continue
        problem = right.mismatch(each, answer, usual, pooled)
        if not pooled and stage.ranks.any(problem):
            rounded = clone(leading(right.base.tree, right.rows))
            copy_into(rounded, oracle(baseline, right.rows, stress.moved(mine), other.base, stage.ranks))
            if stage.ranks.any(compare(rounded, right.tree, None, *custom)):
                return  # rounding decides the right answer: the baseline agreed by chance
        stage.disqualify(each.label, problem and problem.with_facts(**where))


def _answers(stage: Stage, inputs: InputSet, other: InputSet) -> Reference:
    """The oracle's and the baseline's answer. Their errors are raised: no version has to accept what they refuse."""
    baseline, mine, rows = stage.candidates[0], inputs.by_label["baseline"], oracle_rows(stage.job.pair.baseline)
    truth = oracle(baseline, rows, mine, other.base, stage.ranks)
    guards.poison_outputs(mine)
    out = baseline.bind(mine, baseline.prepared(other.base, mine))()
    return Reference(truth, rows, Answer.of(out, clone(out), mine, alike=True))


def count_sent(stage: Stage, inputs: InputSet, other: InputSet) -> dict[str, list[int]]:
    """Label -> bytes that each rank sends in a call; empty for one process. Who sends too little is disqualified.

    A version that calls no collective is not counted, and not in the result: it may access another GPU's memory itself.
    """
    found: dict[str, list[int]] = {}
    if stage.ranks.count == 1:
        return found
    costs, _ = count_costs(stage.remaining, inputs.by_label)
    for each in stage.judged():
        sent: Sent | None = stage.attempt(each.label, _count, each, inputs, other)
        if sent is None:
            continue
        least = costs[each.label].get("link_bytes", 0.0)
        if sent.counted and sent.total < LEAST_SENT * least and not each.differs:
            facts = {"sent": sent.total, "least": least}
            stage.disqualify(each.label, Finding(Cause.SENDS_TOO_LITTLE, facts))
        if stage.ranks.any(sent.counted):
            found[each.label] = stage.ranks.share(sent.total, "sent")
        stage.agree()
    return found


def _count(each: Candidate, inputs: InputSet, other: InputSet) -> Sent:
    mine = inputs.by_label[each.label]
    call = each.bind(mine, each.prepared(clone(other.by_label[each.label]), mine))
    with Sent() as sent:
        call()
    harvest_grads(mine)
    return sent
