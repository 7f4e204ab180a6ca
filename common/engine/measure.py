"""Measure one pair, inside its own process: checks, a pilot, blocks of rounds, and a last look behind the scenes.

A block has fresh inputs. A round runs every arm once, in random order, on inputs of which a random part was just
overwritten: an answer remembered from an earlier call is a wrong answer. What is verified is what was timed.
"""

import os
import random
import secrets
from contextlib import suppress
from functools import partial

from common.checks import guards
from common.checks.arrays import Tree, clone, nbytes
from common.engine import inspection, judge
from common.engine.arms import LiveArm, weights
from common.engine.check import check, check_one_less
from common.engine.conclude import pair_result
from common.engine.inputs import InputSet, harvest_grads
from common.engine.pilot import SLOW_S, judged_blocks, plan, ready
from common.engine.session import BaselineDisqualified, Job, Session
from common.isolation.process import Say
from common.machine.clock import Call, Clock, Sample, make_clock
from common.machine.device import clocks_now, slowdowns, use_device
from common.record.result import CONTROL, PairResult

Sets = list[InputSet]  # those of a block: as many as a sample has calls
CHEAP_OUTPUT = 16 << 20  # bytes up to which every round's answers are compared; else those of one round a block


def measure(job: Job, say: Say) -> PairResult:
    """All that is asked of a pair. `say(stage, fraction)` reports progress. Raises what `inputs` raises."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else torch.compile leaves a pool of processes behind
    say("load", 0.0)
    use_device(job.device)
    session, clock = Session(job, say, random.Random(job.seed)), None
    with suppress(BaselineDisqualified):
        with session.spending("load"):
            session.load()
            use_device(job.device)  # CuPy too, now that a version has imported it
            guards.listen_to_triton()
        check(session)
        if _keep_timed(session):
            clock = _time(session)
    return pair_result(session, clock)


def _keep_timed(session: Session) -> bool:
    """Keep the arms that are to be timed. Is there a baseline, and something to compare with it?"""
    believed = set(session.job.timed) - session.disqualified.keys()
    session.arms = [arm for arm in session.arms if arm.label in (*session.job.timed, CONTROL) or arm.is_library]
    return "baseline" in believed and len(believed) > 1


def _time(session: Session) -> Clock:
    """Pilot, then blocks; leaves the samples in the arms."""
    job = session.job
    session.rng = random.Random(secrets.randbits(64))  # what an earlier run has kept on disk is of other inputs
    name = getattr(session.arms[0].module, "CLOCK", "device") if job.info["kind"] == "cuda" else "wall"
    with session.spending("warm-up"):
        clock = make_clock(name, job.device)
        session.say("pilot", 0.0)
        source = session.inputs(job.size)
        session.count_costs(source)
        blocks, rounds = plan(session, clock, source)
        with session.spending("stress"):
            check_one_less(session)
        for arm in session.remaining:
            nothing: list[Call] = [partial(_nothing, **source.by_arm[arm.label])] * arm.calls
            arm.floor_s = min(clock.sample(nothing).seconds for _ in range(20))
    if job.info["kind"] == "cpu":  # where memory that was never used is slow: a block that tells nothing, by rule
        _block(session, clock, source, rounds, judged=False, first=False)
        _forget(session)
    judged = judged_blocks(session.rng, blocks)
    for attempt in range(2 * blocks):  # a voided block is measured again, within reason
        done = len(session.orders)
        if done == blocks or len(session.remaining) < 3:  # the baseline, the baseline again, and one more
            break
        session.say(f"block {done + 1} of {blocks}", done / blocks)
        _block(session, clock, source, rounds, judged=done in judged, first=attempt == 0)
    if job.info["kind"] == "cuda":
        session.clocks = clocks_now(job.info["uuid"])
    with session.spending("verify"):
        inspection.look(session, clock, source)
    return clock


def _forget(session: Session) -> None:
    """The samples taken so far."""
    session.voided = 0
    session.orders.clear()
    for arm in session.arms:
        for samples in (arm.seconds, arm.tails, arm.cores):
            samples.clear()


def _nothing(**inputs: object) -> None:
    """A call like any other that does no work: what the clock reads then is its floor."""


def _block(session: Session, clock: Clock, source: InputSet, rounds: int, judged: bool, first: bool) -> None:
    """One block: its samples join those of the arms, unless an input was changed in it."""
    job = session.job
    sets = [session.inputs(job.size)]
    sets += [session.inputs(job.size, like=sets[0]) for _ in range(1, max(arm.calls for arm in session.remaining))]
    ready(session, sets[0], source)
    looked_at, samples = session.rng.randrange(rounds), []
    order = session.rng.sample(session.remaining, len(session.remaining))
    blamed, slowed = session.blamed, slowdowns(job.info)
    for number in range(rounds):
        order = order[1:] + order[:1]  # everybody is first in turn
        with session.spending("inputs"):
            values = source if source.mixes else session.inputs(job.size, like=sets[0])
            for inputs in sets:
                inputs.overwrite(values, session.rng)
        one, judging = session.rng.choice(sets), judged and number == looked_at
        seconds, answers = _round(session, clock, source, sets, one, order, number == looked_at)
        judge.compare_round(session, answers, one, closely=number == looked_at)
        clean = not any(judge.blame(session, inputs) for inputs in ((one, source) if judging else ()))
        if judging and clean and session.blamed == blamed:  # answers from inputs that somebody changed tell nothing
            _judge_timed(session, one, source, answers, filled=first)
        before, slowed = slowed, slowdowns(job.info)
        if slowed != before:
            session.voided += 1  # by a rule that is blind to the samples
        else:
            samples.append(seconds)
    with session.spending("verify"):
        for inputs in (*sets, source):
            judge.blame(session, inputs)
    if samples and session.blamed == blamed:
        session.orders.append([list(seconds) for seconds in samples])
        for arm in session.remaining:
            arm.seconds.append([seconds[arm.label] for seconds in samples])


def _judge_timed(session: Session, inputs: InputSet, source: InputSet, answers: dict[str, Tree], filled: bool) -> None:
    for label, why in judge.judge_all(session, inputs, source, "at the timed size", answers, filled).items():
        session.disqualify(label, why and f"the check at the timed size proves nothing: {why}")


def _round(
    session: Session, clock: Clock, source: InputSet, sets: Sets, one: InputSet, order: list[LiveArm], keep_all: bool
) -> tuple[dict[str, float], dict[str, Tree]]:
    """Every arm once: (seconds, answers of the timed calls on the set `one`, as far as they are kept)."""
    seconds, answers = {}, {}
    others = [inputs for inputs in sets if inputs is not one]
    for arm in [arm for arm in order if arm.label not in session.disqualified]:
        chosen, after = session.rng.sample(others, arm.calls - 1), _after(session, arm.calls)
        chosen.insert(len(chosen) - after, one)
        sample = _sample(session, arm, clock, source, chosen, after, keep_all)
        if sample is None:
            continue
        arm.tails.append(sample.tail_s)
        arm.cores.append(sample.cores)
        if sample.waited:
            arm.waited, arm.patience = arm.waited + 1, 2 * arm.patience
        seconds[arm.label] = sample.seconds
        if sample.seen is not None:
            answers[arm.label] = sample.seen
        guards.poison_answer(sample.outputs, one.by_arm[arm.label])
    return seconds, answers


def _after(session: Session, calls: int) -> int:
    """How many of a sample's calls follow the one whose answer is looked at: no call knows whether it is that.

    On a GPU none does: a stop in the middle would show the latency that a batch hides.
    """
    return 0 if session.job.info["kind"] == "cuda" else session.rng.randrange(calls)


def _sample(
    session: Session, arm: LiveArm, clock: Clock, source: InputSet, chosen: Sets, after: int, keep_all: bool
) -> Sample | None:
    """One sample of a call on each of these inputs, with a copy of one of the answers; None if the arm raised.

    The copy is made at once (None where it is too large to): what is written after the clock has stopped is not in it.

    Short calls are preceded by one on other inputs: our own checks since the last sample have emptied the caches.
    """
    mine = [inputs.by_arm[arm.label] for inputs in chosen]
    for inputs in mine:
        guards.poison_outputs(inputs)
    calls: list[Call] = [arm.bind(inputs) for inputs in mine]
    first = {**source.by_arm[arm.label], **weights(mine[-1])}  # a block has one set of weights

    def look(outputs: Tree) -> Tree:
        return clone(outputs) if keep_all or nbytes(outputs) <= CHEAP_OUTPUT else None

    def action() -> Sample:
        if arm.pilot_s < SLOW_S / 10:
            for _ in range(session.rng.choice((1, 2))):  # so that no call knows whether it is timed
                guards.poison_answer(arm.bind(first)(), first)
        return clock.sample(calls, arm.host_s * arm.patience, after, look)

    with session.spending("samples"):
        sample: Sample | None = session.attempt(arm.label, action)
    for inputs in (*mine, first):
        harvest_grads(inputs)
    return sample
