"""Measure one pair, inside its own process: checks, a pilot, then blocks of rounds.

A block has fresh inputs. A round runs every arm once, in random order, on inputs of which a random part was just
overwritten: an answer remembered from an earlier call is a wrong answer. What is verified is what was timed.
"""

import math
import random
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from common import guard, stats
from common.arms import InputSet, LiveArm, count_costs, load_arms
from common.arrays import Tree, clone, nbytes
from common.clock import LEAST_WALL_S, Clock, host_seconds, make_clock, now
from common.conclude import pair_result
from common.device import slowdown, use_device
from common.result import PairResult
from common.session import Job, NobodyLeft, Session

SAMPLES_S = 8.0  # about how long the blocks of a pair may take
ROUNDS, LEAST_ROUNDS = 5, 2
SLOW_S = 0.1  # a call that the pilot need not repeat
LEAST_BLOCKS = 6  # fewer give no 95 % interval
MOST_SETS, SETS_BYTES = 64, 1 << 30  # input sets for short calls under the wall clock
CHEAP_OUTPUT = 16 << 20  # bytes up to which every round's answers are compared; else those of one round a block
TAIL_S, TAIL_SHARE = 30e-6, 0.02  # a device that works on for longer, usually, after the clock stopped was not joined
SHARED_SAMPLE_S = 0.05  # up to here all arms make as many calls a sample as the one that needs most


def measure(job: Job, say: Callable[[str, float], None]) -> PairResult:
    """All that is asked of a pair. `say(stage, fraction)` reports progress. Raises what `inputs` raises."""
    arms = load_arms(job.pair, job.labels)
    use_device(job.device)
    session = Session(job, say, arms, random.Random(job.seed))
    try:
        return pair_result(session, _check_and_time(session))
    except NobodyLeft:
        return pair_result(session, None)


def _check_and_time(session: Session) -> Clock | None:
    """The clock that was used; None if nothing was timed."""
    begin, job, say, arms = now(), session.job, session.say, session.arms
    for i, size in enumerate(job.pair.check_sizes):
        say("check", i / len(job.pair.check_sizes))
        if session.racing:
            inputs = session.inputs(size)
            session.judge_all(inputs, session.inputs(size), f"at size {size}")
            count_costs(session.racing, inputs)
    session.spent_s["check"] = now() - begin
    believed = set(job.timed) - set(session.bad)
    if "baseline" not in believed or len(believed) < 2:
        return None
    session.arms = [arm for arm in arms if arm.label in (*job.timed, "repeat") or arm.label.startswith("library")]
    return _time(session)


def _time(session: Session) -> Clock:
    """Pilot, then blocks; leaves the samples in the arms."""
    begin, job = now(), session.job
    name = getattr(session.arms[0].module, "CLOCK", "device") if job.info["kind"] == "cuda" else "wall"
    clock = make_clock(name, job.device)
    session.say("pilot", 0.0)
    source = session.inputs(job.size)
    count_costs(session.racing, source)
    blocks, rounds = _pilot(session, clock, source)
    session.spent_s["pilot"], begin = now() - begin, now()
    for attempt in range(2 * blocks):  # a voided block is measured again, within reason
        done = len(session.orders)
        if done == blocks or len(session.racing) < 3:  # the baseline, the baseline again, and one more
            break
        session.say(f"block {done + 1} of {blocks}", done / blocks)
        _block(session, clock, source, rounds, judged=done in (0, blocks - 1), first=attempt == 0)
    for arm in session.racing:
        tail_s, seconds = statistics.median(arm.tails), stats.overall_median(arm.seconds)
        if tail_s > max(TAIL_S, TAIL_SHARE * seconds):
            late = f"its device works on for {tail_s * 1e6:.0f} us after the clock stopped"
            session.out(arm.label, "invalid", f"{late}: a stream is not joined")
    session.spent_s["blocks"] = now() - begin
    return clock


def _pilot(session: Session, clock: Clock, source: InputSet) -> tuple[int, int]:
    """(blocks, rounds), from each arm's duration and the baseline's noise against itself: blind to any comparison."""
    job, inputs = session.job, session.inputs(session.job.size)
    first = _ready(session, inputs, source)
    begin = now()
    second = _ready(session, session.inputs(job.size, like=inputs), source)
    prepared_s = now() - begin
    for arm in session.racing:
        arm.compile_s += max(0.0, first[arm.label] - second[arm.label])
        session.attempt(arm, partial(_size_up, arm, inputs, clock, job.device))
    if not session.racing:
        return LEAST_BLOCKS, LEAST_ROUNDS
    most = max(arm.calls for arm in session.racing)
    shared = min(most, int(SHARED_SAMPLE_S / max(arm.pilot_s for arm in session.racing)))
    for arm in session.racing:
        arm.calls = max(arm.calls, shared)  # a batch hides latency: alike in all arms, where it can be
    round_s = sum(arm.pilot_s * arm.calls + arm.host_s for arm in session.racing)
    blocks = job.blocks or stats.blocks_for(_noise(session, clock, inputs, ROUNDS if round_s < 0.2 else LEAST_ROUNDS))
    rounds = ROUNDS
    while rounds > LEAST_ROUNDS and blocks * (prepared_s + rounds * round_s) > SAMPLES_S:
        rounds -= 1
    affordable = int(SAMPLES_S / (prepared_s + rounds * round_s))
    return max(LEAST_BLOCKS, min(blocks, affordable)), rounds


def _ready(session: Session, inputs: InputSet, source: InputSet) -> dict[str, float]:
    """Set up every arm on values that it will not be timed on, and call it once; returns the seconds of each."""
    seconds = {}
    for arm in session.racing:
        begin, mine = now(), inputs.by_arm[arm.label]
        session.attempt(arm, partial(arm.prepare, source.by_arm[arm.label], mine))
        if arm.label not in session.bad:
            session.attempt(arm, arm.bind(mine))
        seconds[arm.label] = now() - begin
    return seconds


def _size_up(arm: LiveArm, inputs: InputSet, clock: Clock, device: str) -> None:
    """How long a call takes the device and the host, and how many calls make a sample."""
    call = arm.bind(inputs.by_arm[arm.label])
    first = clock.sample([call])
    arm.pilot_s = first.seconds
    arm.host_s = first.host_s if clock.name == "device" else 0.0
    if arm.pilot_s > SLOW_S:
        return
    arm.host_s = host_seconds(call, device) if clock.name == "device" else 0.0
    arm.pilot_s = statistics.median(clock.sample([call], arm.host_s).seconds for _ in range(3))
    least_s = LEAST_WALL_S[torch.device(device).type] if clock.name == "wall" else 0.0
    if arm.pilot_s < least_s:
        arm.calls = min(MOST_SETS, 1 + SETS_BYTES // max(1, nbytes(inputs.base)), math.ceil(least_s / arm.pilot_s))


def _noise(session: Session, clock: Clock, inputs: InputSet, rounds: int) -> float:
    """The standard deviation of log(baseline / baseline again)."""
    logs: dict[str, list[float]] = {"baseline": [], "repeat": []}
    for arm in [arm for arm in session.racing if arm.label in logs] * rounds:
        sample = clock.sample([arm.bind(inputs.by_arm[arm.label])] * arm.calls, arm.host_s)
        logs[arm.label].append(np.log(sample.seconds))
    return float(np.std(np.subtract(logs["baseline"], logs["repeat"]), ddof=1))


def _block(session: Session, clock: Clock, source: InputSet, rounds: int, judged: bool, first: bool) -> None:
    """One block: its samples join those of the arms, unless an input was changed in it."""
    job = session.job
    sets = [session.inputs(job.size)]
    sets += [session.inputs(job.size, like=sets[0]) for _ in range(1, max(arm.calls for arm in session.racing))]
    _ready(session, sets[0], source)
    compared, samples = session.rng.randrange(rounds), []
    order = session.rng.sample(session.racing, len(session.racing))
    blamed = session.blamed
    for number in range(rounds):
        order = order[1:] + order[:1]  # everybody is first in turn
        values = source if source.mixes else session.inputs(job.size, like=sets[0])
        for inputs in sets:
            inputs.overwrite(values, session.rng)
        last, judging = session.rng.choice(sets), judged and number == rounds - 1
        seconds, answers = _round(session, clock, sets, last, order, keep_all=judging or number == compared)
        session.compare_all(answers, last)
        if judging and not session.blame(last, job.size):
            session.judge_all(last, source, "at the timed size", answers, filled=first)
        if job.info["kind"] == "cuda" and slowdown(job.info["uuid"]):
            session.voided += 1  # by a rule that is blind to the samples
        else:
            samples.append(seconds)
    for inputs in sets:
        session.blame(inputs, job.size)
    if samples and session.blamed == blamed:
        session.orders.append([list(seconds) for seconds in samples])
        for arm in session.racing:
            arm.seconds.append([seconds[arm.label] for seconds in samples])


def _round(
    session: Session, clock: Clock, sets: list[InputSet], last: InputSet, order: list[LiveArm], keep_all: bool
) -> tuple[dict[str, float], dict[str, Tree]]:
    """Every arm once: (seconds, answers of the timed calls on `last`, as far as they are kept)."""
    seconds, answers = {}, {}
    others = [inputs for inputs in sets if inputs is not last]
    if order[-1].pilot_s < SLOW_S / 10:  # whoever is first after all that was done between two rounds pays for it
        repeat = next(arm for arm in session.arms if arm.label == "repeat")
        session.attempt(repeat, partial(clock.sample, [repeat.bind(last.by_arm["repeat"])], repeat.host_s))
    for arm in [arm for arm in order if arm.label not in session.bad]:
        chosen = [inputs.by_arm[arm.label] for inputs in (*session.rng.sample(others, arm.calls - 1), last)]
        for mine in chosen:
            guard.poison_outputs(mine)
        sample = session.attempt(arm, partial(clock.sample, [arm.bind(mine) for mine in chosen], arm.host_s))
        if sample is None:
            continue
        arm.tails.append(sample.tail_s)
        seconds[arm.label] = sample.seconds
        if keep_all or nbytes(sample.outputs) <= CHEAP_OUTPUT:
            answers[arm.label] = clone(sample.outputs)
    return seconds, answers
