"""A look at a pair's arms, blind to any comparison, before they are compared: how many blocks, rounds and calls."""

import math
import random
import statistics

import numpy as np
import torch

from common.checks import guards
from common.checks.arrays import nbytes
from common.engine.arms import LiveArm
from common.engine.inputs import InputSet, harvest_grads
from common.engine.session import Session
from common.machine.clock import LEAST_WALL_S, Clock, host_seconds, now
from common.record import stats
from common.record.result import CONTROL

SAMPLES_S = 8.0  # about how long the blocks of a pair may take
ROUNDS, LEAST_ROUNDS, LEAST_REPEATS = 5, 1, 2
SLOW_S = 0.1  # a call that the pilot need not repeat more than once
JUDGED = 2  # blocks besides the first, and no version knows which
LEAST_BLOCKS = 6  # fewer give no 95 % interval
MOST_SETS, SETS_BYTES = 64, 1 << 30  # input sets for short calls under the wall clock
SHARED_SAMPLE_S = 0.05  # up to here all arms make as many calls a sample as the one that needs most


def plan(session: Session, clock: Clock, source: InputSet) -> tuple[int, int]:
    """(blocks, rounds), from each arm's duration and the baseline's noise against itself."""
    job, inputs = session.job, session.inputs(session.job.size)
    first = ready(session, inputs, source)
    begin = now()
    second = ready(session, session.inputs(job.size, like=inputs), source)
    prepared_s = now() - begin
    for arm in session.remaining:
        arm.compile_s += max(0.0, first[arm.label] - second[arm.label])
        session.attempt(arm.label, _size_up, arm, inputs, clock, job.device)
    if not session.remaining:
        return LEAST_BLOCKS, LEAST_ROUNDS
    most = max(arm.calls for arm in session.remaining)
    shared = min(most, int(SHARED_SAMPLE_S / max(arm.pilot_s for arm in session.remaining)))
    for arm in session.remaining:
        arm.calls = max(arm.calls, shared)  # a batch hides latency: alike in all arms, where it can be
    round_s = sum(arm.pilot_s * arm.calls + arm.host_s for arm in session.remaining)
    blocks = job.blocks or stats.blocks_for(_noise(session, clock, inputs, ROUNDS if round_s < 0.2 else LEAST_REPEATS))
    fitting = (n for n in range(ROUNDS, LEAST_ROUNDS, -1) if blocks * (prepared_s + n * round_s) <= SAMPLES_S)
    rounds = next(fitting, LEAST_ROUNDS)
    affordable = int(SAMPLES_S / (prepared_s + rounds * round_s))
    return max(LEAST_BLOCKS, min(blocks, affordable)), rounds


def judged_blocks(rng: random.Random, blocks: int) -> set[int]:
    """Of whose answers one round's are judged by the oracle; those of all are compared with the baseline's."""
    return {0, *rng.sample(range(1, blocks), JUDGED)}


def ready(session: Session, inputs: InputSet, source: InputSet) -> dict[str, float]:
    """Set up every arm on values that it will not be timed on, and call it once; returns the seconds of each."""
    seconds = {}
    with session.spending("warm-up"):
        for arm in session.remaining:
            begin, mine = now(), inputs.by_arm[arm.label]
            session.attempt(arm.label, arm.prepare, source.by_arm[arm.label], mine)
            if arm.label not in session.disqualified:
                guards.poison_answer(session.attempt(arm.label, arm.bind(mine)), mine)
            seconds[arm.label] = now() - begin
            harvest_grads(mine)
    return seconds


def _size_up(arm: LiveArm, inputs: InputSet, clock: Clock, device: str) -> None:
    """How long a call takes the device and the host, and how many calls make a sample."""
    call = arm.bind(inputs.by_arm[arm.label])
    first = clock.sample([call])
    arm.pilot_s = first.seconds
    arm.host_s = first.host_s if clock.name == "device" else 0.0
    if arm.pilot_s > SLOW_S:  # once more: the first may have been slow for being the first
        arm.pilot_s = min(arm.pilot_s, clock.sample([call], arm.host_s).seconds)
        return
    arm.host_s = host_seconds(call, device) if clock.name == "device" else 0.0
    arm.pilot_s = statistics.median(clock.sample([call], arm.host_s).seconds for _ in range(3))
    least_s = LEAST_WALL_S[torch.device(device).type] if clock.name == "wall" else 0.0
    if arm.pilot_s < least_s:
        arm.calls = min(MOST_SETS, 1 + SETS_BYTES // max(1, nbytes(inputs.base)), math.ceil(least_s / arm.pilot_s))


def _noise(session: Session, clock: Clock, inputs: InputSet, rounds: int) -> float:
    """The standard deviation of log(baseline / baseline again)."""
    logs: dict[str, list[float]] = {"baseline": [], CONTROL: []}
    for arm in [arm for arm in session.remaining if arm.label in logs] * rounds:
        sample = clock.sample([arm.bind(inputs.by_arm[arm.label])] * arm.calls, arm.host_s)
        logs[arm.label].append(np.log(sample.seconds))
    return float(np.std(np.subtract(logs["baseline"], logs[CONTROL]), ddof=1))
