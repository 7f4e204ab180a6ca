"""Run one candidate alone in its own process: is its answer right there, and how long does it take?

The parent sends a seed right before each sample, the same in every such run. Only after the sample does it say whether
the answer is kept. The baseline runs last: after its samples, its process judges all kept answers on the same inputs,
drawn again. It runs no code of another version.
"""

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.checks.ambiguous_answers import resolve
from common.checks.arrays import Tree, tensors
from common.checks.compare_to_reference import compare
from common.engine import untimed_checks
from common.engine.candidates import Candidate, reference_rows
from common.engine.job import AloneRequest, AloneResult, Job
from common.engine.judgement import expected_answer
from common.engine.measure import load_candidates
from common.engine.plan import CallTiming, clock_of, warm_up
from common.engine.ranks import ONE_RANK, Ranks
from common.engine.reference import leading_rows
from common.engine.rounding_neighbours import rounding_neighbours
from common.engine.sampling import Sets, draw_sets, overwrite, take_sample
from common.engine.stage import Stage
from common.isolation.pipe import MAY_COMPILE, Ask, ParentPipe
from common.record.outcome import Cause, Finding, Outcome, Verdict

PIECES, KEPT_VALUES = 64, 1 << 22  # a large answer is kept as this many random pieces, with this many values in all


def run_alone(job: Job, request: AloneRequest, parent: ParentPipe, ranks: Ranks = ONE_RANK) -> AloneResult:
    """Run alone, in a fresh process. `job.labels`: the baseline, which draws the inputs, and the candidate's file.

    In a group of ranks, rank 0 asks for all.
    """
    bench = load_candidates(job, parent, ranks)

    def ask(question: str) -> Any:
        return ranks.first(parent.ask(question) if ranks.rank == 0 else None)

    stage = Stage(bench.only(["baseline", request.label]))
    candidate = next((candidate for candidate in stage.remaining if candidate.label == request.label), None)
    result = _sample_alone(stage, candidate, request, ask) if candidate else AloneResult([])
    stage.agree()
    for label in (request.label, "baseline"):
        if label in stage.disqualified:
            return replace(result, outcome=stage.disqualified[label])
    if candidate and candidate.label == "baseline" and request.folder:
        return replace(result, wrong_answers=_judge_answers(stage, result, request, ask))
    return result


def _sample_alone(stage: Stage, candidate: Candidate, request: AloneRequest, ask: Ask) -> AloneResult:
    clock, stage.rng = clock_of(stage), random.Random(ask("seed"))
    source, sets = stage.inputs(stage.job.size), draw_sets(stage, request.calls)
    source.can_mix &= not request.whole_draws
    stage.progress.report("alone", MAY_COMPILE if candidate.is_library else 0.0)
    state = warm_up(stage, [candidate], sets[0], source)[candidate.label].state
    timing, seconds = CallTiming(0.0, request.host_s, request.calls), []
    for number in range(request.samples + 1):
        stage.progress.report("alone", number / request.samples)
        stage.rng = random.Random(seed := ask("seed"))
        overwrite(stage, sets, source)
        if not stage.remaining:
            break
        sample = take_sample(stage, candidate, state, timing, clock, sets, sets[0], keep_all=True)
        if sample is None or candidate.label in stage.disqualified:
            break
        seconds.append(sample.seconds)
        if ask("keep?") and request.folder:
            file = _answer_file(stage, request.folder, candidate.label)
            _save_answer(sample.inspection, seed, reference_rows(stage.job.pair.baseline), file)
            _check_unchanged(stage, candidate, sets)
    _check_unchanged(stage, candidate, [*sets, source])
    result = AloneResult(
        seconds[1:], precision=candidate.precision, custom=candidate.custom, answer_differs=candidate.answer_differs
    )
    if not request.folder or candidate.label in stage.disqualified:
        return result
    return replace(result, busy_cores=untimed_checks.cores_when_idle())


def _check_unchanged(stage: Stage, candidate: Candidate, sets: Sets) -> None:
    for violation in filter(None, (inputs.violation() for inputs in sets)):
        stage.disqualify(candidate.label, Finding(Cause.CHANGED_INPUT, {"name": violation[0]}))


def _answer_file(stage: Stage, folder: str, label: str) -> Path:
    return Path(folder) / f"{label.replace('/', '.')}.{stage.ranks.rank}.pt"


def _save_answer(answer: Tree, seed: int, rows: int | None, file: Path) -> None:
    """Save an answer: its leading `rows` for the reference, all of it for the comparison with the baseline's."""
    excerpts = {
        "shapes": {path: list(t.shape) for path, t in tensors(answer)},
        "head": _excerpt(leading_rows(answer, rows), seed),
    }
    torch.save(excerpts | ({"all": _excerpt(answer, seed)} if rows else {}), file)


def _excerpt(tree: Tree, seed: int) -> dict[str, torch.Tensor]:
    """Every array, flat; of a large array random pieces, chosen by the seed."""
    return {path: _pieces(t.reshape(-1), random.Random(seed)) for path, t in tensors(tree)}


def _pieces(flat: torch.Tensor, rng: random.Random) -> torch.Tensor:
    return torch.cat([flat[place] for place in _places(flat.numel(), rng)])


def _places(numel: int, rng: random.Random) -> list[slice]:
    if numel <= KEPT_VALUES:
        return [slice(None)]
    length = KEPT_VALUES // PIECES
    starts = sorted(rng.randrange(numel - length + 1) for _ in range(PIECES))
    return [slice(start, start + length) for start in starts]


def _restore_all(
    excerpts: dict[str, torch.Tensor], arrays: dict[str, torch.Tensor], seed: int
) -> dict[str, torch.Tensor]:
    """Copies of arrays in which the places of their excerpts have these values, as the excerpts are; by path."""
    copies = {}
    for path, excerpt in excerpts.items():
        copies[path] = arrays[path].to(excerpt.device, excerpt.dtype, copy=True).contiguous()
        flat, places = copies[path].view(-1), _places(arrays[path].numel(), random.Random(seed))
        for place, values in zip(places, excerpt.view(len(places), -1), strict=True):
            flat[place] = values
    return copies


def _judge_answers(stage: Stage, baseline_run: AloneResult, request: AloneRequest, ask: Ask) -> dict[str, Finding]:
    """Label -> why a kept answer is wrong.

    The parent sends the seeds again, up to that of the kept sample, and how to judge each answer.
    """
    (first, *seeds), runs = ask("what was kept?")
    runs["baseline"] = baseline_run
    stage.rng = random.Random(first)
    source, (inputs,) = stage.inputs(stage.job.size), draw_sets(stage, 1)
    source.can_mix &= not request.whole_draws
    for seed in seeds:
        stage.rng = random.Random(seed)
        overwrite(stage, [inputs], source)
    expected, rows = expected_answer(stage, inputs, source)
    excerpt = _excerpt(expected, seeds[-1])
    arrays = dict(tensors(expected))
    read = partial(torch.load, map_location=stage.job.device, weights_only=True)
    base, outcomes = read(_answer_file(stage, request.folder, "baseline")), dict[str, Outcome]()
    whole = partial(_restore_all, arrays=arrays, seed=seeds[-1])
    neighbours = rounding_neighbours(stage, inputs, source, lambda: whole(base["head"]))
    for label, run in runs.items():
        answer, custom = read(_answer_file(stage, request.folder, label)), (run.precision, run.custom)
        problem: Finding | None = None
        if answer["shapes"] != base["shapes"]:
            problem = Finding(Cause.WRONG_SHAPES, {"shapes": answer["shapes"], "expected": base["shapes"]})
        elif not run.answer_differs:
            problem = compare(answer["head"], excerpt, base["head"], *custom)
            if problem:
                near = [dict(tensors(tree)) for tree in neighbours()]
                resolved = _excerpt(resolve(whole(answer["head"]), arrays, near, inputs.base, *custom), seeds[-1])
                problem = compare(resolved, excerpt, base["head"], *custom)
            problem = problem or (compare(answer["all"], base["all"], None, *custom) if rows else None)
        if problem:
            outcomes[label] = Outcome(Verdict.INVALID, problem)
    merged = stage.ranks.merge(outcomes)
    return {label: outcome.reason for label, outcome in merged.items() if outcome.reason}
