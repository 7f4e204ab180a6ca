"""The samples of a pair: blocks of rounds.

A block has fresh inputs. A round runs every candidate once, in a rotating order. Just before it a random part of the
inputs is overwritten: an answer remembered from an earlier call is wrong. The verified answers are the timed ones.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from common.checks import guards
from common.checks.arrays import Tree, clone, merge_numbers, nbytes
from common.checks.compare_to_baseline import Errors
from common.checks.device_trace import CallTrace
from common.engine import judgement
from common.engine.candidates import Candidate, Costs
from common.engine.inputs import InputSet, harvest_grads
from common.engine.plan import CallTiming, Plan, Preparation, WarmUp, judged_blocks, warm_up
from common.engine.stage import Bench, Stage
from common.machine.clock import Call, Clock, Sample
from common.machine.throttling import clocks_now, slowdowns

CHEAP_OUTPUT = 16 << 20  # bytes up to which every round's answers are compared, above it one round's per block
Sets = list[InputSet]  # of a block: as many as a sample has calls
Round = dict[str, Sample]  # by label, in the order of execution


@dataclass(frozen=True)
class Samples:
    """All samples. `voided_rounds`: those during which the machine slowed down for heat.

    `clocks`: a GPU's clocks at the last sample. `traces`: of untimed calls after all samples. `sent_bytes`: what each
    rank sends in a call. `errors`: by label, of the first timed answers that were compared with the reference.
    """

    clock: str = ""
    plan: Plan = field(default_factory=Plan)
    costs: Costs = field(default_factory=dict)
    blocks: list[list[Round]] = field(default_factory=list)
    voided_rounds: int = 0
    clocks: dict[str, int] = field(default_factory=dict)
    traces: dict[str, CallTrace] = field(default_factory=dict)
    sent_bytes: dict[str, list[int]] = field(default_factory=dict)
    errors: dict[str, Errors] = field(default_factory=dict)

    def for_label(self, label: str) -> list[Sample]:
        return [samples[label] for block in self.blocks for samples in block]

    def seconds(self, label: str) -> list[list[float]]:
        return [[samples[label].seconds for samples in block] for block in self.blocks]


def sample(bench: Bench, preparation: Preparation) -> tuple[Bench, Samples]:
    """The planned number of blocks, or fewer if no candidate is left to compare."""
    samples = Samples()
    with Stage(bench, preparation.seed) as stage:
        samples = sample_blocks(stage, preparation)
    return stage.end(), samples


def sample_blocks(stage: Stage, preparation: Preparation) -> Samples:
    """The same, on a stage's candidates."""
    clock, plan, source = preparation.clock, preparation.plan, preparation.source
    job, waits = stage.job, Counter[str]()
    _touch_memory(stage, clock, plan, source)
    block_numbers, blocks, voided_rounds = judged_blocks(stage.rng, plan.blocks), list[list[Round]](), 0
    errors: dict[str, Errors] = {}
    order = stage.rng.sample(stage.remaining, len(stage.remaining))
    for _ in range(2 * plan.blocks):  # a voided block is measured again, up to twice as many in all
        done = len(blocks)
        if done == plan.blocks or len(stage.remaining) < 3:  # the baseline, the baseline again, and one more
            break
        stage.progress.report(f"block {done + 1} of {plan.blocks}", done / plan.blocks)
        order = order[1:] + order[:1]  # otherwise a candidate's buffers would have the same addresses in every block
        is_judged = done in block_numbers
        rounds, block_errors = _sample_block(stage, clock, plan, source, order, waits, errors, is_judged)
        errors = errors or block_errors
        if rounds is not None:
            voided_rounds += plan.rounds - len(rounds)
            blocks += [rounds] if rounds else []
    clocks = clocks_now(job.info["uuid"]) if job.info["kind"] == "cuda" else {}
    return Samples(clock.name, plan, preparation.costs, blocks, voided_rounds, clocks, errors=errors)


def _touch_memory(stage: Stage, clock: Clock, plan: Plan, source: InputSet) -> None:
    """On a CPU, use all memory once: its first use is slow, so this block is always discarded."""
    if stage.job.info["kind"] == "cpu":
        _sample_block(stage, clock, plan, source, stage.remaining, Counter(), {}, is_judged=False)


def _sample_block(
    stage: Stage, clock: Clock, plan: Plan, source: InputSet, setup_order: list[Candidate], waits: Counter[str],
    errors: dict[str, Errors], is_judged: bool,
) -> tuple[list[Round] | None, dict[str, Errors]]:  # fmt: skip
    """One block's rounds (None if an input was changed), and all errors by label if it is the first that `is_judged`.

    `setup_order`: of the candidates. `errors`: from an earlier block.
    """
    sets = draw_sets(stage, max((plan.timings[candidate.label].calls for candidate in stage.remaining), default=1))
    states = warm_up(stage, [candidate for candidate in setup_order if candidate in stage.remaining], sets[0], source)
    compared_round, rounds, is_spoilt = stage.rng.randrange(plan.rounds), list[Round](), False
    block_errors: dict[str, Errors] = {}
    order, counters = stage.rng.sample(stage.remaining, len(stage.remaining)), slowdowns(stage.job.info)
    for number in range(plan.rounds):
        order = order[1:] + order[:1]  # every candidate is first in turn
        overwrite(stage, sets, source)
        compared_set, is_compared = stage.rng.choice(sets), number == compared_round
        samples = _sample_round(stage, clock, plan, states, sets, compared_set, order, waits, is_compared)
        answers = {label: sample.inspection for label, sample in samples.items() if sample.inspection is not None}
        base_errors = errors.get("baseline", {}) if is_compared else {}
        is_spoilt |= judgement.compare_round(stage, answers, compared_set, base_errors)
        if is_judged and is_compared:
            is_spoilt |= judgement.blame(stage, compared_set, source)
            if not is_spoilt:  # answers from changed inputs prove nothing
                block_errors = judgement.judge_timed(stage, compared_set, source, answers, first=not errors)
            stage.agree()
        earlier, counters = counters, slowdowns(stage.job.info)
        if not stage.ranks.any(counters != earlier):  # a rule that does not see the samples
            rounds.append({label: replace(sample, outputs=None, inspection=None) for label, sample in samples.items()})
    with stage.progress.spending("verify"):
        is_spoilt = judgement.blame(stage, *sets, source) or is_spoilt
        stage.agree()
    return None if is_spoilt else rounds, block_errors


def draw_sets(stage: Stage, calls: int) -> Sets:
    """Fresh inputs for this many calls, with one set of weights."""
    sets = [stage.inputs(stage.job.size)]
    return sets + [stage.inputs(stage.job.size, like=sets[0]) for _ in range(1, calls)]


def overwrite(stage: Stage, sets: Sets, source: InputSet) -> None:
    """Write values that no call has seen."""
    with stage.progress.spending("inputs"), stage.memory_check(stage.job.size):
        for inputs in sets:
            # equally many numbers drawn on all ranks, whatever the shapes of each
            inputs.overwrite(source, random.Random(stage.rng.getrandbits(63)))


def _sample_round(
    stage: Stage, clock: Clock, plan: Plan, states: dict[str, WarmUp], sets: Sets, compared_set: InputSet,
    order: Iterable[Candidate], waits: Counter[str], keep_all: bool,
) -> Round:  # fmt: skip
    """Run each candidate once; a kept answer is the copy from `compared_set`. `waits` are counted on."""
    samples: Round = {}
    for candidate in [candidate for candidate in order if candidate.label not in stage.disqualified]:
        timing, state = plan.timings[candidate.label], states[candidate.label].state
        padded = replace(timing, host_s=timing.host_s * 2 ** waits[candidate.label])  # hide more after waits
        sample = take_sample(stage, candidate, state, padded, clock, sets, compared_set, keep_all)
        if sample:
            samples[candidate.label] = sample
            waits[candidate.label] += sample.device_waited
    return samples


def take_sample(
    stage: Stage, candidate: Candidate, state: dict[str, object], timing: CallTiming, clock: Clock, sets: Sets,
    compared_set: InputSet, keep_all: bool,
) -> Sample | None:  # fmt: skip
    """One sample: calls on different sets, one of which is `compared_set`. None if the candidate raised.

    The answer is copied at once, unless it is too large: it cannot contain what is written after the clock has stopped.
    """
    calls_after = _calls_after(stage, timing.calls)
    sample_sets = stage.rng.sample([inputs for inputs in sets if inputs is not compared_set], timing.calls - 1)
    sample_sets.insert(len(sample_sets) - calls_after, compared_set)
    call_arguments = [inputs.prepare(candidate.label) for inputs in sample_sets]
    calls: list[Call] = [candidate.bind(inputs, state) for inputs in call_arguments]

    def copy_answer(outputs: Tree) -> Tree:
        return merge_numbers(clone(outputs)) if keep_all or nbytes(outputs) <= CHEAP_OUTPUT else None

    with stage.progress.spending("samples"):
        sample: Sample | None = stage.attempt(
            candidate.label, clock.sample, calls, timing.host_s, calls_after, copy_answer
        )
    for inputs in call_arguments:
        harvest_grads(inputs)
    if sample:
        guards.poison_answer(sample.outputs, compared_set.by_label[candidate.label])
    return sample


def _calls_after(stage: Stage, calls: int) -> int:
    """How many of a sample's calls follow the one whose answer is examined. No call knows whether it is that one.

    On a GPU none does: a stop in the middle would show the latency that a batch hides.
    """
    return 0 if stage.job.info["kind"] == "cuda" else stage.rng.randrange(calls)
