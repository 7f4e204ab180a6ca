"""The numbers of blocks, rounds and calls, from each candidate alone, before any are compared."""

import math
import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from common import stats
from common.checks import guards
from common.checks.arrays import has_arithmetic, nbytes, tensors
from common.checks.compare_to_baseline import compare_elements
from common.engine.candidates import Candidate, Costs, caches, count_costs
from common.engine.check import check_one_less
from common.engine.inputs import InputSet, harvest_grads
from common.engine.judgement import fresh_answer
from common.engine.stage import Bench, Stage
from common.isolation.pipe import MAY_COMPILE
from common.machine.clock import LEAST_WALL_S, Call, Clock, GroupClock, host_seconds, make_clock, now
from common.record.result import CONTROL

SAMPLES_S = 8.0  # approximate time of a pair's blocks
ROUNDS = {"cuda": 5, "cpu": 9}  # a CPU's rounds differ more
LEAST_ROUNDS, LEAST_REPEATS = 1, 2
SLOW_S = 0.1  # a slower call is not repeated by the pilot
JUDGED_BLOCKS = 2  # blocks besides the first whose answers are judged; no version knows which
LEAST_BLOCKS = 6  # fewer give no 95 % interval
MOST_SETS, SETS_BYTES = 64, 1 << 30  # input sets for short calls on the wall clock
SHARED_SAMPLE_S = 0.05  # below this time per sample, all candidates make as many calls as the one that needs the most
FLOOR_SAMPLES = 20


@dataclass(frozen=True)
class CallTiming:
    """A candidate's seconds per call, seconds until the call returns (0 on the wall clock), and calls per sample.

    `compile_s`: the surplus of its first setup and call. `floor_s`: the clock's reading for as many empty calls.
    """

    seconds: float
    host_s: float
    calls: int = 1
    compile_s: float = 0.0
    floor_s: float = 0.0


@dataclass(frozen=True)
class WarmUp:
    """For a block: what `setup` returned, and the seconds of setup and a first call."""

    state: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Plan:
    """How a pair is sampled; `timings` by label. `whole_draws`: before each call all inputs are drawn anew."""

    blocks: int = 0
    rounds: int = 0
    timings: dict[str, CallTiming] = field(default_factory=dict)
    whole_draws: bool = False


@dataclass(frozen=True)
class Preparation:
    """What sampling needs: the clock, the work of each candidate, the plan, and inputs that are overwritten again."""

    clock: Clock
    costs: Costs
    plan: Plan
    source: InputSet
    seed: int  # of the draws that follow


def prepare(bench: Bench, seed: int) -> tuple[Bench, Preparation | None]:
    """Decide how the pair is sampled, and check it at the timed size less one; None without a baseline."""
    preparation = None
    with Stage(bench, seed) as stage, stage.progress.spending("warm-up"):
        clock, source = clock_of(stage), stage.inputs(stage.job.size)
        costs, problems = count_costs(stage.remaining, source.by_label, timed=True)
        for label, problem in problems.items():
            stage.disqualify(label, problem)
        stage.agree()
        plan = stage.ranks.first(make_plan(stage, clock, source))
        plan = replace(plan, whole_draws=needs_whole_draws(stage, source))
        source.can_mix &= not plan.whole_draws
        with stage.progress.spending("stress"):
            check_one_less(stage)
        preparation = Preparation(clock, costs, plan, source, stage.rng.getrandbits(63))
    return stage.end(), preparation


def clock_of(stage: Stage) -> Clock:
    """The device's clock on a GPU, unless the pair asks for the wall clock."""
    on_gpu = stage.job.info["kind"] == "cuda"
    name = getattr(stage.candidates[0].module, "CLOCK", "device") if on_gpu else "wall"
    clock = make_clock(name, stage.job.device, stage.ranks.together)
    return clock if stage.ranks.count == 1 else GroupClock(clock, stage.ranks.share)


def make_plan(stage: Stage, clock: Clock, source: InputSet) -> Plan:
    """The plan, from each candidate's duration and the noise of two candidates, each against itself."""
    job, inputs = stage.job, stage.inputs(stage.job.size)
    may_compile = any(candidate.is_library for candidate in stage.remaining)
    stage.progress.report("pilot", MAY_COMPILE if may_compile else 0.0)
    first = warm_up(stage, stage.remaining, inputs, source)
    stage.progress.report("pilot", 0.0)
    begin = now()
    second = warm_up(stage, stage.remaining, stage.inputs(job.size, like=inputs), source)
    block_s, timings, calls = now() - begin, dict[str, CallTiming](), dict[str, Call]()
    for candidate in stage.remaining:
        calls[candidate.label] = candidate.bind(inputs.by_label[candidate.label], first[candidate.label].state)
        timing = stage.attempt(candidate.label, time_call, calls[candidate.label], inputs, clock, job.device)
        compile_s = max(0.0, first[candidate.label].seconds - second[candidate.label].seconds)
        if timing:
            timings[candidate.label] = replace(timing, compile_s=stage.first_s.get(candidate.label, 0.0) + compile_s)
    if not stage.remaining:
        return Plan(LEAST_BLOCKS, LEAST_ROUNDS, {})
    timings = stage.ranks.first(_equalize_calls(timings))
    for label, timing in timings.items():
        empty = partial(lambda **inputs: None, **source.by_label[label])  # what the clock reads then is its floor
        floor_s = min(clock.sample([empty] * timing.calls).seconds for _ in range(FLOOR_SAMPLES))
        timings[label] = replace(timing, floor_s=floor_s)
    round_s = sum(timing.seconds * timing.calls + timing.host_s for timing in timings.values())
    most_rounds = ROUNDS[job.info["kind"]]
    repeats = most_rounds if round_s < 0.2 else LEAST_REPEATS
    blocks = job.blocks or stats.blocks_for(_noise(stage, clock, calls, timings, repeats), most_rounds)
    fitting = (n for n in range(most_rounds, LEAST_ROUNDS, -1) if blocks * (block_s + n * round_s) <= SAMPLES_S)
    rounds = next(fitting, LEAST_ROUNDS)
    affordable = int(SAMPLES_S / (block_s + rounds * round_s))
    return Plan(max(LEAST_BLOCKS, min(blocks, affordable)), rounds, timings)


def needs_whole_draws(stage: Stage, source: InputSet) -> bool:
    """Whether replacing a part of the inputs is not enough, or gives no valid input.

    An answer that is not of floats may not change then. And where inputs have a structure (sorted, positive definite,
    a sum of 1) candidates raise, or differ from each other, that agree on fresh draws. What is found condemns nobody.
    """
    trial, inputs = Stage(stage.end()), stage.inputs(stage.job.size)
    inputs.overwrite(source, random.Random(stage.rng.getrandbits(63)))
    trial.first_s = {candidate.label: 0.0 for candidate in trial.candidates}  # all have been called before
    answers = {each.label: fresh_answer(trial, each, inputs, source) for each in trial.candidates_to_judge()}
    base, is_needed = answers.get("baseline"), trial.disqualified.keys() != stage.disqualified.keys()
    if base:
        is_needed |= not all(has_arithmetic(t) for _, t in tensors(base.tree))
        for candidate in trial.candidates_to_judge():
            if (answer := answers[candidate.label]) and not candidate.answer_differs:
                custom = candidate.precision, candidate.custom
                is_needed |= compare_elements(answer.tree, base.tree, *custom) is not None
    return bool(stage.ranks.any(is_needed))


def _equalize_calls(timings: dict[str, CallTiming]) -> dict[str, CallTiming]:
    """Give all candidates equally many calls per sample, if that is not too slow: a batch hides latency."""
    most_calls = max(timing.calls for timing in timings.values())
    common_calls = min(most_calls, int(SHARED_SAMPLE_S / max(timing.seconds for timing in timings.values())))
    return {label: replace(timing, calls=max(timing.calls, common_calls)) for label, timing in timings.items()}


def judged_blocks(rng: random.Random, blocks: int) -> set[int]:
    """The blocks with a round whose answers are compared with the reference; all are compared with the baseline."""
    return {0, *rng.sample(range(1, blocks), JUDGED_BLOCKS)}


def warm_up(stage: Stage, candidates: Iterable[Candidate], inputs: InputSet, source: InputSet) -> dict[str, WarmUp]:
    """Set up each candidate on values that are not timed, and call it once; one that raises is disqualified."""
    warm_ups = {}
    with stage.progress.spending("warm-up"):
        for candidate in candidates:
            begin, arguments = now(), inputs.by_label[candidate.label]
            label = candidate.label
            state = stage.attempt(label, candidate.run_setup, source.by_label[label], arguments) or {}
            if candidate.label not in stage.disqualified:
                guards.poison_answer(stage.attempt(candidate.label, candidate.bind(arguments, state)), arguments)
            warm_ups[candidate.label] = WarmUp(state, now() - begin)
            harvest_grads(arguments)
    return warm_ups


def time_call(call: Call, inputs: InputSet, clock: Clock, device: str) -> CallTiming:
    """Seconds per call of the device and of the host, and the calls per sample."""
    on_device = clock.name == "device"
    first = clock.sample([call])
    is_slow = first.seconds > SLOW_S
    host_s = 0.0 if not on_device else first.host_s if is_slow else host_seconds(call, device)
    if is_slow:  # again: the first call may have been slow only because it was the first
        return CallTiming(min(first.seconds, clock.sample([call], host_s).seconds), host_s)
    seconds = statistics.median(clock.sample([call], host_s).seconds for _ in range(3))
    least_s = 0.0 if on_device else LEAST_WALL_S[torch.device(device).type]
    most_sets = min(MOST_SETS, 1 + SETS_BYTES // max(1, nbytes(inputs.base)))
    most_sets = 1 if caches(inputs.base) else most_sets  # a version may keep where they are
    return CallTiming(seconds, host_s, min(most_sets, max(1, math.ceil(least_s / seconds))))


def _noise(stage: Stage, clock: Clock, calls: dict[str, Call], timings: dict[str, CallTiming], repeats: int) -> float:
    """The standard deviation of log(candidate / the same again): the baseline's, or the shortest's if that is larger.

    A short time often varies by about as many microseconds as a long one. In percent that is more. So the shortest
    candidate may make a ratio noisier than the baseline does. 0 if a call raises: its version is disqualified.
    """
    shortest = min(timings, key=lambda label: timings[label].seconds)
    labels, logs = ["baseline", CONTROL], []
    if shortest not in labels:
        labels += [shortest, shortest]
    for label in labels * repeats:
        timing = timings[label]
        sample = stage.attempt(label, clock.sample, [calls[label]] * timing.calls, timing.host_s)
        if sample is None:
            return 0.0
        logs.append(np.log(sample.seconds))
    log_pairs = np.reshape(logs, (repeats, -1, 2))
    return float(np.std(log_pairs[..., 0] - log_pairs[..., 1], axis=0, ddof=1).max())
