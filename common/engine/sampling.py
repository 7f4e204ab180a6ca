"""The samples of a pair: blocks of rounds.

A block has fresh inputs. A round runs every candidate once, in a rotating order. Just before it a random part of the
inputs is overwritten: an answer remembered from an earlier call is wrong. The verified answers are the timed ones.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from common.checks import guards
from common.checks.arrays import Tree, clone, nbytes
from common.checks.compare_to_baseline import Errors
from common.checks.device_trace import CallTrace
from common.engine import judgement
from common.engine.candidates import Candidate, Costs
from common.engine.inputs import InputSet, harvest_grads
from common.engine.plan import CallTiming, Plan, Prepared, Ready, judged_blocks, ready
from common.engine.stage import Bench, Stage
from common.machine.clock import Call, Clock, Sample
from common.machine.throttling import clocks_now, slowdowns

CHEAP_OUTPUT = 16 << 20  # bytes up to which every round's answers are compared, above it one round's per block
Sets = list[InputSet]  # of a block: as many as a sample has calls
Round = dict[str, Sample]  # by label, in the order of execution


@dataclass(frozen=True)
class Samples:
    """All samples. `voided`: rounds during which the machine slowed down for heat.

    `clocks`: a GPU's clocks at the last sample. `seen`: findings in untimed calls after all samples. `sent`: the bytes
    that each rank sends in a call. `errors`: by label, of the first timed answers that the oracle judged.
    """

    clock: str = ""
    plan: Plan = field(default_factory=Plan)
    costs: Costs = field(default_factory=dict)
    blocks: list[list[Round]] = field(default_factory=list)
    voided: int = 0
    clocks: dict[str, int] = field(default_factory=dict)
    seen: dict[str, CallTrace] = field(default_factory=dict)
    sent: dict[str, list[int]] = field(default_factory=dict)
    errors: dict[str, Errors] = field(default_factory=dict)

    def of(self, label: str) -> list[Sample]:
        return [each[label] for block in self.blocks for each in block]

    def seconds(self, label: str) -> list[list[float]]:
        return [[each[label].seconds for each in block] for block in self.blocks]


def sample(bench: Bench, prepared: Prepared) -> tuple[Bench, Samples]:
    """The planned number of blocks, or fewer if no candidate is left to compare."""
    samples = Samples()
    with Stage(bench, prepared.seed) as stage:
        samples = sample_blocks(stage, prepared)
    return stage.end(), samples


def sample_blocks(stage: Stage, prepared: Prepared) -> Samples:
    """The same, on a stage's candidates."""
    clock, planned, source = prepared.clock, prepared.plan, prepared.source
    job, waited = stage.job, Counter[str]()
    _first_touch(stage, clock, planned, source)
    judged, blocks, voided = judged_blocks(stage.rng, planned.blocks), list[list[Round]](), 0
    errors: dict[str, Errors] = {}
    seats = stage.rng.sample(stage.remaining, len(stage.remaining))
    for _ in range(2 * planned.blocks):  # a voided block is measured again, up to twice as many in all
        done = len(blocks)
        if done == planned.blocks or len(stage.remaining) < 3:  # the baseline, the baseline again, and one more
            break
        stage.progress.say(f"block {done + 1} of {planned.blocks}", done / planned.blocks)
        seats = seats[1:] + seats[:1]  # otherwise an arm's buffers would have the same addresses in every block
        rounds, found = _block(stage, clock, planned, source, seats, waited, errors, done in judged)
        errors = errors or found
        if rounds is not None:
            voided += planned.rounds - len(rounds)
            blocks += [rounds] if rounds else []
    clocks = clocks_now(job.info["uuid"]) if job.info["kind"] == "cuda" else {}
    return Samples(clock.name, planned, prepared.costs, blocks, voided, clocks, errors=errors)


def _first_touch(stage: Stage, clock: Clock, planned: Plan, source: InputSet) -> None:
    """On a CPU, use all memory once: its first use is slow, so this block is always discarded."""
    if stage.job.info["kind"] == "cpu":
        _block(stage, clock, planned, source, stage.remaining, Counter(), {}, judged=False)


def _block(
    stage: Stage, clock: Clock, planned: Plan, source: InputSet, seats: list[Candidate], waited: Counter[str],
    errors: dict[str, Errors], judged: bool,
) -> tuple[list[Round] | None, dict[str, Errors]]:  # fmt: skip
    """One block's rounds (None if an input was changed), and all errors by label if it is the first `judged`.

    `seats`: the candidates in the order of setup. `errors`: from an earlier block.
    """
    sets = draw_sets(stage, max((planned.paces[each.label].calls for each in stage.remaining), default=1))
    states = ready(stage, [each for each in seats if each in stage.remaining], sets[0], source)
    looked_at, rounds, is_spoilt = stage.rng.randrange(planned.rounds), list[Round](), False
    found: dict[str, Errors] = {}
    order, slowed = stage.rng.sample(stage.remaining, len(stage.remaining)), slowdowns(stage.job.info)
    for number in range(planned.rounds):
        order = order[1:] + order[:1]  # every candidate is first in turn
        overwrite(stage, sets, source)
        one, closely = stage.rng.choice(sets), number == looked_at
        samples = _round(stage, clock, planned, states, sets, one, order, waited, closely)
        answers = {label: sample.inspection for label, sample in samples.items() if sample.inspection is not None}
        is_spoilt |= judgement.compare_round(stage, answers, one, errors.get("baseline", {}) if closely else {})
        if judged and closely:
            is_spoilt |= judgement.blame(stage, one, source)
            if not is_spoilt:  # answers from changed inputs prove nothing
                found = judgement.judge_timed(stage, one, source, answers, first=not errors)
            stage.agree()
        before, slowed = slowed, slowdowns(stage.job.info)
        if not stage.ranks.any(slowed != before):  # a rule that does not see the samples
            rounds.append({label: replace(sample, outputs=None, inspection=None) for label, sample in samples.items()})
    with stage.progress.spending("verify"):
        is_spoilt = judgement.blame(stage, *sets, source) or is_spoilt
        stage.agree()
    return None if is_spoilt else rounds, found


def draw_sets(stage: Stage, calls: int) -> Sets:
    """Fresh inputs for this many calls, with one set of weights."""
    sets = [stage.inputs(stage.job.size)]
    return sets + [stage.inputs(stage.job.size, like=sets[0]) for _ in range(1, calls)]


def overwrite(stage: Stage, sets: Sets, source: InputSet) -> None:
    """Write values that no call has seen."""
    with stage.progress.spending("inputs"):
        values = source if source.mixes else stage.inputs(stage.job.size, like=sets[0])
        for inputs in sets:
            # equally many numbers drawn on all ranks, whatever the shapes of each
            inputs.overwrite(values, random.Random(stage.rng.getrandbits(63)))


def _round(
    stage: Stage, clock: Clock, planned: Plan, states: dict[str, Ready], sets: Sets, one: InputSet,
    order: Iterable[Candidate], waited: Counter[str], keep_all: bool,
) -> Round:  # fmt: skip
    """Run each candidate once; a kept answer is copied on the set `one`. `waited` is counted on."""
    samples: Round = {}
    for each in [each for each in order if each.label not in stage.disqualified]:
        pace, state = planned.paces[each.label], states[each.label].state
        hidden = replace(pace, host_s=pace.host_s * 2 ** waited[each.label])  # hide more after waits
        sample = take(stage, each, state, hidden, clock, sets, one, keep_all)
        if sample:
            samples[each.label] = sample
            waited[each.label] += sample.device_waited
    return samples


def take(
    stage: Stage, who: Candidate, state: dict[str, object], pace: CallTiming, clock: Clock, sets: Sets,
    one: InputSet, keep_all: bool,
) -> Sample | None:  # fmt: skip
    """One sample: calls on different sets, one of which is `one`. None if the candidate raised.

    The answer is copied at once, unless it is too large: it cannot contain what is written after the clock has stopped.
    """
    after = _after(stage, pace.calls)
    chosen = stage.rng.sample([inputs for inputs in sets if inputs is not one], pace.calls - 1)
    chosen.insert(len(chosen) - after, one)
    mine = [inputs.by_label[who.label] for inputs in chosen]
    for inputs in mine:
        guards.poison_outputs(inputs)
    calls: list[Call] = [who.bind(inputs, state) for inputs in mine]

    def look(outputs: Tree) -> Tree:
        return clone(outputs) if keep_all or nbytes(outputs) <= CHEAP_OUTPUT else None

    with stage.progress.spending("samples"):
        sample: Sample | None = stage.attempt(who.label, clock.sample, calls, pace.host_s, after, look)
    for inputs in mine:
        harvest_grads(inputs)
    if sample:
        guards.poison_answer(sample.outputs, one.by_label[who.label])
    return sample


def _after(stage: Stage, calls: int) -> int:
    """How many of a sample's calls follow the one whose answer is examined. No call knows whether it is that one.

    On a GPU none does: a stop in the middle would show the latency that a batch hides.
    """
    return 0 if stage.job.info["kind"] == "cuda" else stage.rng.randrange(calls)
