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
from common.checks.arrays import nbytes
from common.engine.candidates import Candidate, Costs, count_costs
from common.engine.check import check_one_less
from common.engine.inputs import InputSet, harvest_grads
from common.engine.stage import Bench, Stage
from common.isolation.pipe import MAY_COMPILE
from common.machine.clock import LEAST_WALL_S, Call, Clock, GroupClock, host_seconds, make_clock, now
from common.record.result import CONTROL

SAMPLES_S = 8.0  # approximate time of a pair's blocks
ROUNDS = {"cuda": 5, "cpu": 9}  # a CPU's rounds differ more
LEAST_ROUNDS, LEAST_REPEATS = 1, 2
SLOW_S = 0.1  # a slower call is not repeated by the pilot
JUDGED = 2  # blocks besides the first whose answers are judged; no version knows which
LEAST_BLOCKS = 6  # fewer give no 95 % interval
MOST_SETS, SETS_BYTES = 64, 1 << 30  # input sets for short calls on the wall clock
SHARED_SAMPLE_S = 0.05  # below this time per sample, all arms make as many calls as the one that needs the most
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
class Ready:
    """For a block: what `setup` returned, and the seconds of setup and a first call."""

    state: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Plan:
    """How a pair is sampled; `paces` by label."""

    blocks: int = 0
    rounds: int = 0
    paces: dict[str, CallTiming] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """What sampling needs: the clock, the work of each candidate, the plan, and inputs that are overwritten again."""

    clock: Clock
    costs: Costs
    plan: Plan
    source: InputSet
    seed: int  # of the draws that follow


def prepare(bench: Bench, seed: int) -> tuple[Bench, Prepared | None]:
    """Decide how the pair is sampled, and check it at the timed size less one; None without a baseline."""
    prepared = None
    with Stage(bench, seed) as stage, stage.progress.spending("warm-up"):
        clock, source = clock_of(stage), stage.inputs(stage.job.size)
        costs, wrong = count_costs(stage.remaining, source.by_label, timed=True)
        for label, problem in wrong.items():
            stage.disqualify(label, problem)
        stage.agree()
        planned = stage.ranks.first(plan(stage, clock, source))
        with stage.progress.spending("stress"):
            check_one_less(stage)
        prepared = Prepared(clock, costs, planned, source, stage.rng.getrandbits(63))
    return stage.end(), prepared


def clock_of(stage: Stage) -> Clock:
    """The device's clock on a GPU, unless the pair asks for the wall clock."""
    on_gpu = stage.job.info["kind"] == "cuda"
    name = getattr(stage.candidates[0].module, "CLOCK", "device") if on_gpu else "wall"
    clock = make_clock(name, stage.job.device, stage.ranks.together)
    return clock if stage.ranks.count == 1 else GroupClock(clock, stage.ranks.share)


def plan(stage: Stage, clock: Clock, source: InputSet) -> Plan:
    """The plan, from each candidate's duration and the noise of two arms, each against itself."""
    job, inputs = stage.job, stage.inputs(stage.job.size)
    may_compile = any(each.is_library for each in stage.remaining)
    stage.progress.say("pilot", MAY_COMPILE if may_compile else 0.0)
    first = ready(stage, stage.remaining, inputs, source)
    stage.progress.say("pilot", 0.0)
    begin = now()
    second = ready(stage, stage.remaining, stage.inputs(job.size, like=inputs), source)
    prepared_s, paces, calls = now() - begin, dict[str, CallTiming](), dict[str, Call]()
    for each in stage.remaining:
        calls[each.label] = each.bind(inputs.by_label[each.label], first[each.label].state)
        pace = stage.attempt(each.label, size_up, calls[each.label], inputs, clock, job.device)
        longer_s = max(0.0, first[each.label].seconds - second[each.label].seconds)
        if pace:
            paces[each.label] = replace(pace, compile_s=stage.first_s.get(each.label, 0.0) + longer_s)
    if not stage.remaining:
        return Plan(LEAST_BLOCKS, LEAST_ROUNDS, {})
    paces = stage.ranks.first(_as_many(paces))
    for label, pace in paces.items():
        empty = partial(lambda **inputs: None, **source.by_label[label])  # what the clock reads then is its floor
        floor_s = min(clock.sample([empty] * pace.calls).seconds for _ in range(FLOOR_SAMPLES))
        paces[label] = replace(pace, floor_s=floor_s)
    round_s = sum(pace.seconds * pace.calls + pace.host_s for pace in paces.values())
    most = ROUNDS[job.info["kind"]]
    pairs = most if round_s < 0.2 else LEAST_REPEATS
    blocks = job.blocks or stats.blocks_for(_noise(stage, clock, calls, paces, pairs), most)
    fitting = (n for n in range(most, LEAST_ROUNDS, -1) if blocks * (prepared_s + n * round_s) <= SAMPLES_S)
    rounds = next(fitting, LEAST_ROUNDS)
    affordable = int(SAMPLES_S / (prepared_s + rounds * round_s))
    return Plan(max(LEAST_BLOCKS, min(blocks, affordable)), rounds, paces)


def _as_many(paces: dict[str, CallTiming]) -> dict[str, CallTiming]:
    """Give all candidates equally many calls per sample, if that is not too slow: a batch hides latency."""
    most = max(pace.calls for pace in paces.values())
    shared = min(most, int(SHARED_SAMPLE_S / max(pace.seconds for pace in paces.values())))
    return {label: replace(pace, calls=max(pace.calls, shared)) for label, pace in paces.items()}


def judged_blocks(rng: random.Random, blocks: int) -> set[int]:
    """The blocks in which the oracle judges the answers of one round; all blocks are compared with the baseline."""
    return {0, *rng.sample(range(1, blocks), JUDGED)}


def ready(stage: Stage, who: Iterable[Candidate], inputs: InputSet, source: InputSet) -> dict[str, Ready]:
    """Set up each candidate on values that are not timed, and call it once; one that raises is disqualified."""
    found = {}
    with stage.progress.spending("warm-up"):
        for each in who:
            begin, mine = now(), inputs.by_label[each.label]
            state = stage.attempt(each.label, each.prepared, source.by_label[each.label], mine) or {}
            if each.label not in stage.disqualified:
                guards.poison_answer(stage.attempt(each.label, each.bind(mine, state)), mine)
            found[each.label] = Ready(state, now() - begin)
            harvest_grads(mine)
    return found


def size_up(call: Call, inputs: InputSet, clock: Clock, device: str) -> CallTiming:
    """Seconds per call of the device and of the host, and the calls per sample."""
    on_device = clock.name == "device"
    first = clock.sample([call])
    is_slow = first.seconds > SLOW_S
    host_s = 0.0 if not on_device else first.host_s if is_slow else host_seconds(call, device)
    if is_slow:  # again: the first call may have been slow only because it was the first
        return CallTiming(min(first.seconds, clock.sample([call], host_s).seconds), host_s)
    seconds = statistics.median(clock.sample([call], host_s).seconds for _ in range(3))
    least_s = 0.0 if on_device else LEAST_WALL_S[torch.device(device).type]
    most = min(MOST_SETS, 1 + SETS_BYTES // max(1, nbytes(inputs.base)))
    return CallTiming(seconds, host_s, min(most, max(1, math.ceil(least_s / seconds))))


def _noise(stage: Stage, clock: Clock, calls: dict[str, Call], paces: dict[str, CallTiming], times: int) -> float:
    """The standard deviation of log(arm / the same arm again): the baseline's, or the shortest arm's if that is larger.

    A short time often varies by about as many microseconds as a long one. In percent that is more. So the shortest arm
    may make a ratio noisier than the baseline does. 0 if a call raises: its version is disqualified.
    """
    shortest = min(paces, key=lambda label: paces[label].seconds)
    arms, logs = ["baseline", CONTROL], []
    if shortest not in arms:
        arms += [shortest, shortest]
    for label in arms * times:
        pace = paces[label]
        sample = stage.attempt(label, clock.sample, [calls[label]] * pace.calls, pace.host_s)
        if sample is None:
            return 0.0
        logs.append(np.log(sample.seconds))
    pairs = np.reshape(logs, (times, -1, 2))
    return float(np.std(pairs[..., 0] - pairs[..., 1], axis=0, ddof=1).max())
