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

from common.checks.arrays import Tree, tensors
from common.checks.compare_to_reference import compare
from common.engine import untimed_checks
from common.engine.candidates import Candidate, oracle_rows
from common.engine.job import Alone, Errand, Job
from common.engine.judgement import leading, truth_of
from common.engine.measure import load
from common.engine.plan import CallTiming, clock_of, ready
from common.engine.ranks import ONE, Ranks
from common.engine.sampling import Sets, draw_sets, overwrite, take
from common.engine.stage import Stage
from common.isolation.pipe import MAY_COMPILE, Ask, ParentPipe
from common.record.outcome import Cause, Finding, Outcome, Verdict

PIECES, KEPT = 64, 1 << 22  # a large answer is kept as this many random pieces, with this many values in all


def run_alone(job: Job, errand: Errand, parent: ParentPipe, ranks: Ranks = ONE) -> Alone:
    """Run alone, in a fresh process. `job.labels`: the baseline, which draws the inputs, and the candidate's file.

    In a group of ranks, rank 0 asks for all.
    """
    bench = load(job, parent, ranks)

    def ask(question: str) -> Any:
        return ranks.first(parent.ask(question) if ranks.rank == 0 else None)

    stage = Stage(bench.only(["baseline", errand.label]))
    who = next((each for each in stage.remaining if each.label == errand.label), None)
    found = _found(stage, who, errand, ask) if who else Alone([])
    stage.agree()
    for label in (errand.label, "baseline"):
        if label in stage.disqualified:
            return replace(found, outcome=stage.disqualified[label])
    if who and who.label == "baseline" and errand.folder:
        return replace(found, wrong=_judged(stage, found, errand.folder, ask))
    return found


def _found(stage: Stage, who: Candidate, errand: Errand, ask: Ask) -> Alone:
    clock, stage.rng = clock_of(stage), random.Random(ask("seed"))
    source, sets = stage.inputs(stage.job.size), draw_sets(stage, errand.calls)
    stage.progress.say("alone", MAY_COMPILE if who.is_library else 0.0)
    state = ready(stage, [who], sets[0], source)[who.label].state
    pace, seconds = CallTiming(0.0, errand.host_s, errand.calls), []
    for number in range(errand.samples + 1):
        stage.progress.say("alone", number / errand.samples)
        stage.rng = random.Random(seed := ask("seed"))
        overwrite(stage, sets, source)
        sample = take(stage, who, state, pace, clock, sets, sets[0], keep_all=True) if stage.remaining else None
        if sample is None or who.label in stage.disqualified:
            break
        seconds.append(sample.seconds)
        if ask("keep?") and errand.folder:
            _keep(sample.inspection, seed, oracle_rows(stage.job.pair.baseline), _file(stage, errand.folder, who.label))
            _blame(stage, who, sets)
    _blame(stage, who, [*sets, source])
    found = Alone(seconds[1:], precision=who.precision, custom=who.custom, differs=who.differs)
    if not errand.folder or who.label in stage.disqualified:
        return found
    return replace(found, busy=untimed_checks.cores_when_idle())


def _blame(stage: Stage, who: Candidate, sets: Sets) -> None:
    for found in filter(None, (inputs.violation() for inputs in sets)):
        stage.disqualify(who.label, Finding(Cause.CHANGED_INPUT, {"name": found[0]}))


def _file(stage: Stage, folder: str, label: str) -> Path:
    return Path(folder) / f"{label.replace('/', '.')}.{stage.ranks.rank}.pt"


def _keep(answer: Tree, seed: int, rows: int | None, file: Path) -> None:
    """Save an answer: its leading `rows` for the oracle, all of it for the comparison with the baseline's."""
    kept = {
        "shapes": {path: list(t.shape) for path, t in tensors(answer)},
        "head": _excerpt(leading(answer, rows), seed),
    }
    torch.save(kept | ({"all": _excerpt(answer, seed)} if rows else {}), file)


def _excerpt(tree: Tree, seed: int) -> dict[str, torch.Tensor]:
    """Every array, flat and on the CPU; of a large array random pieces, chosen by the seed."""
    return {path: _pieces(t.reshape(-1), random.Random(seed)).cpu() for path, t in tensors(tree)}


def _pieces(flat: torch.Tensor, rng: random.Random) -> torch.Tensor:
    if flat.numel() <= KEPT:
        return flat
    length = KEPT // PIECES
    starts = sorted(rng.randrange(flat.numel() - length + 1) for _ in range(PIECES))
    return torch.cat([flat[start : start + length] for start in starts])


def _judged(stage: Stage, found: Alone, folder: str, ask: Ask) -> dict[str, Finding]:
    """Label -> why a kept answer is wrong.

    The parent sends the seeds again, up to that of the kept sample, and how to judge each answer.
    """
    (first, *seeds), runs = ask("what was kept?")
    runs["baseline"] = found
    stage.rng = random.Random(first)
    source, (one,) = stage.inputs(stage.job.size), draw_sets(stage, 1)
    for seed in seeds:
        stage.rng = random.Random(seed)
        overwrite(stage, [one], source)
    truth, rows = truth_of(stage, one, source)
    right = _excerpt(truth, seeds[-1])
    del truth
    read = partial(torch.load, map_location=stage.job.device, weights_only=True)
    base, wrong = read(_file(stage, folder, "baseline")), dict[str, Outcome]()
    for label, run in runs.items():
        mine, custom = read(_file(stage, folder, label)), (run.precision, run.custom)
        problem: Finding | None = None
        if mine["shapes"] != base["shapes"]:
            problem = Finding(Cause.WRONG_SHAPES, {"shapes": mine["shapes"], "expected": base["shapes"]})
        elif not run.differs:
            problem = compare(mine["head"], right, base["head"], *custom)
            problem = problem or (compare(mine["all"], base["all"], None, *custom) if rows else None)
        if problem:
            wrong[label] = Outcome(Verdict.INVALID, problem)
    merged = stage.ranks.merged(wrong)
    return {label: outcome.reason for label, outcome in merged.items() if outcome.reason}
