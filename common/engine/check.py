"""Check every version at the check sizes, on ordinary values and on stress draws."""

import gc
import itertools
from contextlib import suppress
from dataclasses import replace
from typing import Any

from common.checks import guards, interpreter_watch, stress
from common.checks.arrays import Tree, clone, copy_into, has_arithmetic, merge_numbers, tensors
from common.checks.comm_bytes import CommCounter
from common.checks.compare_to_reference import LEAST_CHUNK, compare
from common.checks.kernel_memory import watched
from common.checks.poisoned_memory import STRESS, USUAL, Condition
from common.engine.candidates import Candidate, count_costs, reference_answer, reference_rows, weights
from common.engine.inputs import InputSet, harvest_grads
from common.engine.judgement import Facts, Findings, fresh_answer, judge_all
from common.engine.reference import Answer, Reference, leading_rows
from common.engine.rounding_neighbours import rounding_neighbours
from common.engine.stage import Bench, DoesNotFit, Stage
from common.pairs.contract import Version
from common.pairs.pair import is_of_tuned
from common.pairs.source import has_no_launch
from common.record.outcome import Cause, Finding, Verdict, Where

MOST_ALIKE = 8  # so many draws are alike by chance only if there is hardly anything to draw
UNIT = 16  # Triton compiles another kernel where numbers are multiples of 16
MOST_ELEMENTS, MOST_PROGRAMS = 1 << 18, 1 << 10  # of the largest input, of the baseline, at a size beyond launches
LEAST_SENT = 0.99  # of the minimum work: a cost may be rounded


def check(bench: Bench) -> Bench:
    """Check every version at every `check` size; a check that zeros would pass at all of them proves nothing.

    A library is judged at the sizes where it is timed: elsewhere it does not matter, and torch.compile takes seconds
    per shape. If nothing is timed, it is judged at the first check size, but not on a CPU. Candidates that have all
    passed at an earlier size of a sweep are not checked again: the timed size is judged anyway.
    """
    if {candidate.label for candidate in bench.remaining} <= set(bench.job.verified):
        return bench
    with Stage(bench) as stage:
        _check_sizes(stage)
    return stage.end()


def _check_sizes(stage: Stage) -> None:
    interpreter_watch.enforce()
    sizes = stage.job.pair.check_sizes
    choices = [(_choices(stage.job.pair.sizes[size]), is_of_tuned(size)) for size in sizes]  # a size chooses for it
    blind_spots: Findings = {}
    for i, size in enumerate(sizes):
        stage.progress.report_check(i / len(sizes))
        left_out = stage.job.pair.lessons_left_out(size)
        with stage.leaving_out(left_out):
            if len(stage.candidates_to_judge(libraries=False)) > 1:  # a version beside the baseline
                findings = _check_size(stage, i, size, is_new=choices[i] not in choices[:i])
                kept = blind_spots.keys() & ({*findings} | left_out) if i else {*findings}
                blind_spots = {label: finding for label, finding in (findings | blind_spots).items() if label in kept}
    stage.progress.report_check(None)
    for label, finding in blind_spots.items():
        stage.disqualify(label, finding.with_facts(check=f"size{'s' * (len(sizes) > 1)} {', '.join(sizes)}"))
    stage.agree()
    for candidate in stage.candidates_to_judge(libraries=False)[1:]:
        if stage.ranks.count > 1:  # whoever refuses a size leaves the others waiting
            continue
        if any(programs for programs, _ in stage.grids.get(candidate.label, ())):
            _check_beyond_launches(stage, candidate)
            _check_offsets(stage, candidate)
        elif candidate.defines_kernel and stage.job.device == "cpu" and not has_no_launch(*_versions(stage, candidate)):
            text = "its kernel was launched at no check size: only a GPU shows whether it is right"
            stage.disqualify(candidate.label, Finding(Cause.NEEDS, {"text": text}), Verdict.SKIPPED)


def _check_size(stage: Stage, i: int, size: str, is_new: bool) -> Findings:
    """Check every version at the i-th size, then on its draws. Returns label -> wrong answers that would pass."""
    inputs = stage.inputs(size)
    other = stage.inputs(size)
    if weights(inputs.base) and not any(_varies(inputs, stage.inputs(size)) for _ in range(MOST_ALIKE)):
        stage.disqualify("baseline", Finding(Cause.ONLY_WEIGHTS))
        return {}
    on_gpu = stage.job.device != "cpu"  # no kernel runs in the interpreter, which takes seconds
    libraries = i == 0 and on_gpu and not stage.job.timed
    is_quick = i > 0 and not on_gpu and stage.job.stressed  # beside a GPU it matters which of both calls is wrong
    where: Facts = {"where": Where.SIZE.value, "size": size}
    blind_spots, answer = judge_all(stage, inputs, other, where, libraries=libraries, only_filled=is_quick)
    for label, problem in count_costs(stage.remaining, inputs.by_label)[1].items():
        stage.disqualify(label, problem)
    stage.agree()
    count_sent_bytes(stage, inputs, other)
    draws = _draws(i, is_new, inputs.pristine) if stage.job.stressed else []
    if stage.ranks.count > 1:  # whoever refuses there leaves the others waiting
        draws = [draw for draw in draws if draw not in stress.LAYOUTS]
    with stage.progress.spending("stress"):
        for n, draw in enumerate(draws):
            stage.progress.report_check((i + n / len(draws)) / len(stage.job.pair.check_sizes))
            condition = replace(STRESS, may_refuse=draw in stress.LAYOUTS)
            with inputs.stress_draw(draw) as has_arrays:
                if has_arrays:
                    scale_answer = answer if draw in stress.FLAT_DRAWS else None
                    _judge_versions(stage, inputs, other, {**where, "draw": draw}, scale_answer, condition)
    return blind_spots


def _varies(inputs: InputSet, other: InputSet) -> bool:
    """Whether anything but the weights differs between two draws, or will be made to differ. A constant is no input."""
    changed = guards.changed_input(inputs.pristine, other.pristine) if not inputs.differing(other) else "its form"
    return bool(changed) or any(has_arithmetic(t) for _, t in tensors(inputs.pristine))


def _draws(i: int, is_new: bool, tree: Tree) -> list[str]:
    """All draws at the first size, one at each other size; the telling ones where a size chooses something new.

    Wide gaps also where all rows are whole units: elsewhere a version may read copies, which have no gaps.
    """
    draws = stress.suitable_draws(tree)
    if i == 0:
        return [*stress.STRIDES, *stress.LAYOUTS, *draws]
    in_turn = draws[i % len(draws) :][:1] if draws else ()
    is_whole = all(t.shape[-1] % UNIT == 0 for _, t in tensors(tree) if t.dim())
    return [*dict.fromkeys([*(stress.TELLING if is_new else ()), *(stress.STRIDES[1:] if is_whole else ()), *in_turn])]


def _choices(arguments: dict[str, Any]) -> str:
    """The arguments of a size that are not numbers (an operation, a type): each may have its own lines in a version."""
    return repr(sorted((name, value) for name, value in arguments.items() if type(value) not in (int, float)))


def _versions(stage: Stage, candidate: Candidate) -> tuple[Version, Version]:
    """A candidate's version, and the baseline."""
    pair = stage.job.pair
    return next(version for version in pair.versions if version.label == candidate.label), pair.baseline


def _check_beyond_launches(stage: Stage, candidate: Candidate) -> None:
    """Check a version where there is more work than its launches have covered so far, and a remainder.

    The number of its programs may be written into it, or each may see one block of a row. It may refuse such a size,
    and launches with more programs than before show nothing new.
    """
    from common.traffic.wide_offsets import most_elements  # imports triton

    grids = [grid for grid in stage.grids[candidate.label] if grid[0]]
    programs, lanes = map(max, zip(*grids, strict=True))
    is_fixed = len({count for count, _ in grids}) == 1
    arguments, baseline = stage.job.pair.sizes[stage.job.pair.check_sizes[0]], stage.candidates[0].module
    numbers = {name: value for name, value in arguments.items() if type(value) is int}
    for name, most in itertools.product(numbers, {lanes} | ({programs, programs * lanes} if is_fixed else set())):
        larger = {**arguments, name: most + most // 2 + 1}
        if 0 < most_elements(baseline, larger) < MOST_ELEMENTS:
            condition = Condition(most_programs=programs, may_refuse=True)
            with watched(races=False, most_programs=MOST_PROGRAMS):  # the baseline
                _judge_resized(stage, larger, name, Where.SIZE, condition, candidate.label)


def _check_offsets(stage: Stage, candidate: Candidate) -> None:
    """Disqualify a version whose offsets overflow 32 bits where the baseline's do not."""
    from common.traffic.wide_offsets import overflowed_offset  # imports triton

    sizes, baseline = stage.job.pair.sizes, stage.candidates[0].module
    if stress.OFFSETS in getattr(candidate.module, "STRESS", {}):
        return
    arguments = sizes.get("count", sizes["default"])
    problem = overflowed_offset(candidate.module, baseline, arguments)
    if problem and not overflowed_offset(baseline, baseline, arguments):
        stage.disqualify(candidate.label, Finding(Cause.OUT_OF_BOUNDS, {"text": problem, "offsets": True}))


def check_one_less(stage: Stage) -> None:
    """Check at the timed size with each of its numbers less one in turn, where a version may fail on the tail.

    Only if the baseline accepts that size and there is room for it. A version must accept the largest number less one;
    others it may refuse, by an error. (In a group of processes that would leave the others waiting: there only the
    largest.)
    """
    arguments = stage.job.pair.sizes[stage.job.size]
    numbers = {name: value for name, value in arguments.items() if type(value) is int}
    largest = max(numbers, key=lambda key: numbers[key], default="")
    for name, number in numbers.items():
        if number < 2 or not stage.remaining or (stage.ranks.count > 1 and name != largest):
            continue
        condition = Condition(may_refuse=name != largest)
        _judge_resized(stage, {**arguments, name: number - 1}, name, Where.LESS, condition)


def _judge_resized(
    stage: Stage, arguments: dict[str, Any], name: str, where: Where, condition: Condition, label: str = ""
) -> None:
    """Judge every version, or one, at a size with another number of this name; not if the baseline refuses it."""
    facts = {"where": where.value, "size": f"{name} = {arguments[name]}"}
    refusals = (DoesNotFit, ValueError, RuntimeError, TypeError, AssertionError)
    with suppress(*refusals), stage.memory_check(stage.job.size):
        arguments = arguments | stage.ranks.rank_arguments
        inputs = InputSet(stage.remaining, arguments, stage.job.device, stage.rng.randrange(2**31))
        _judge_versions(stage, inputs, inputs, facts, condition=condition, label=label)
    gc.collect()  # a refusal's traceback keeps its inputs, at a timed size a large part of the memory


def _judge_versions(
    stage: Stage, inputs: InputSet, other: InputSet, where: Facts, scale_answer: Tree = None,
    condition: Condition = USUAL, label: str = "",
) -> None:  # fmt: skip
    """Judge every version, or one, if the baseline agrees with the reference, except those that leave this draw out."""
    if not stage.remaining:
        return
    reference: Reference | None = stage.attempt("", _make_reference, stage, inputs, other)
    if reference is None:
        return
    if scale_answer is None and sum(t.numel() for _, t in tensors(reference.base.tree)) < LEAST_CHUNK:
        scale_answer = reference.tree  # too few values for an RMS error: each is judged alone
    baseline, arguments = stage.candidates[0], inputs.by_label["baseline"]
    custom = baseline.precision, baseline.custom, leading_rows(scale_answer, reference.rows)
    if stage.ranks.any(compare(leading_rows(reference.base.tree, reference.rows), reference.tree, None, *custom)):
        return
    draw = where.get("draw", "")
    pooled = draw not in stress.LARGE_DRAWS
    for candidate in stage.candidates_to_judge(libraries=False)[1:]:
        if draw in getattr(candidate.module, "STRESS", {}) or label not in ("", candidate.label):
            continue
        answer = fresh_answer(stage, candidate, inputs, other, reference.base, condition)
        if answer is None or candidate.label in stage.disqualified:
            stage.add_facts(candidate.label, **({"draw": draw} if draw else {}))
            continue
        problem = reference.mismatch(candidate, answer, scale_answer, pooled)
        if not pooled and stage.ranks.any(problem):
            rounded = clone(leading_rows(reference.base.tree, reference.rows))
            perturbed = stress.perturb_by_roundings(arguments)
            copy_into(rounded, reference_answer(baseline, reference.rows, perturbed, other.base, stage.ranks))
            if stage.ranks.any(compare(rounded, reference.tree, None, *custom)):
                return  # rounding decides the right answer: the baseline agreed by chance
        stage.disqualify(candidate.label, problem and problem.with_facts(**where))


def _make_reference(stage: Stage, inputs: InputSet, other: InputSet) -> Reference:
    """The reference answer and the baseline's. Their errors are raised: no version has to accept what they refuse."""
    baseline, arguments = stage.candidates[0], inputs.prepare("baseline")
    rows = reference_rows(stage.job.pair.baseline)
    expected = reference_answer(baseline, rows, arguments, other.base, stage.ranks)
    inputs.prepare("baseline")
    out = baseline.bind(arguments, baseline.run_setup(other.base, arguments))()
    answer = Answer.from_call(
        out, merge_numbers(clone(out)), arguments, same_layout=True, with_gradients=baseline.has_gradients
    )
    near = rounding_neighbours(stage, inputs, other, lambda: answer.tree)
    return Reference(expected, rows, answer, arguments, near)


def count_sent_bytes(stage: Stage, inputs: InputSet, other: InputSet) -> dict[str, list[int]]:
    """Label -> bytes that each rank sends in a call; empty for one process. Who sends too little is disqualified.

    A version that calls no collective is not counted, and not in the result: it may access another GPU's memory itself.
    """
    sent_bytes: dict[str, list[int]] = {}
    if stage.ranks.count == 1:
        return sent_bytes
    costs, _ = count_costs(stage.remaining, inputs.by_label)
    for candidate in stage.candidates_to_judge():
        counter: CommCounter | None = stage.attempt(candidate.label, _count_call, candidate, inputs, other)
        if counter is None:
            continue
        least = costs[candidate.label].get("link_bytes", 0.0)
        if counter.bytes_by_operator and counter.total < LEAST_SENT * least and not candidate.answer_differs:
            facts = {"sent": counter.total, "least": least}
            stage.disqualify(candidate.label, Finding(Cause.SENDS_TOO_LITTLE, facts))
        if stage.ranks.any(counter.bytes_by_operator):
            sent_bytes[candidate.label] = stage.ranks.share(counter.total, "sent")
        stage.agree()
    return sent_bytes


def _count_call(candidate: Candidate, inputs: InputSet, other: InputSet) -> CommCounter:
    arguments = inputs.by_label[candidate.label]
    call = candidate.bind(arguments, candidate.run_setup(clone(other.by_label[candidate.label]), arguments))
    with CommCounter() as counter:
        call()
    harvest_grads(arguments)
    return counter
