"""What samples do not show, found in untimed calls.

These are: actions that a warm call must not take, late or hidden device work, allocated memory, and cores that are busy
between calls.
"""

import random
import time
from dataclasses import replace

from common.checks import device_trace, guards
from common.engine.candidates import Candidate
from common.engine.check import count_sent_bytes
from common.engine.inputs import InputSet
from common.engine.plan import Preparation, warm_up
from common.engine.sampling import Samples
from common.engine.stage import Bench, Stage
from common.machine.clock import Call, Clock, now
from common.record.outcome import Cause, Finding

IDLE_SAMPLE_S = 0.05
IDLE_RETRY_S = 0.3  # wait before a second sample: pools of threads spin for a while
IDLE_CORES = 0.3


def check_untimed(bench: Bench, preparation: Preparation, samples: Samples) -> tuple[Bench, Samples]:
    """What is sent and done in untimed calls, if anything was sampled."""
    if not samples.blocks:
        return bench, samples
    with Stage(bench, preparation.seed + 1) as stage, stage.progress.spending("verify"):
        sent_bytes = count_sent_bytes(stage, stage.inputs(stage.job.size), preparation.source)
        samples = replace(
            samples, sent_bytes=sent_bytes, traces=check_calls(stage, preparation.clock, preparation.source)
        )
    return stage.end(), samples


def check_calls(stage: Stage, clock: Clock, source: InputSet) -> dict[str, device_trace.CallTrace]:
    """Make one to three untimed calls of every candidate; disqualify a candidate for what a call must not do."""
    traces: dict[str, device_trace.CallTrace] = {}
    other = stage.inputs(stage.job.size)
    states = warm_up(stage, stage.remaining, other, source)

    def warm_call(candidate: Candidate) -> Call:
        """A call on values that the candidate has not seen."""
        source.overwrite(other, random.Random(stage.rng.getrandbits(63)))
        return candidate.bind(source.by_label[candidate.label], states[candidate.label].state)

    for candidate in stage.candidates_to_judge():
        first_actions = stage.attempt(candidate.label, guards.untimely_actions, warm_call(candidate))
        second_actions = stage.ranks.any(first_actions) and stage.attempt(
            candidate.label, guards.untimely_actions, warm_call(candidate)
        )  # a late start happens once
        actions = ", ".join(sorted(first_actions & second_actions)) if first_actions and second_actions else ""
        stage.disqualify(candidate.label, Finding(Cause.UNTIMELY, {"what": actions}) if actions else None)
    for candidate in stage.candidates_to_judge():  # last: the profiler slows every later launch
        call, timed_by_events = warm_call(candidate), clock.name == "device"
        trace = stage.attempt(candidate.label, device_trace.trace_call, call, stage.job.device, timed_by_events)
        if trace:
            traces[candidate.label] = trace
            stage.disqualify(candidate.label, trace.outside)
    stage.agree()
    return traces


def cores_when_idle() -> float:
    """The number of cores that this process keeps busy between calls."""
    for before_s in (0.0, IDLE_RETRY_S):
        time.sleep(before_s)
        cpu_start, begin = time.process_time(), now()
        time.sleep(IDLE_SAMPLE_S)
        cores = (time.process_time() - cpu_start) / (now() - begin)
        if cores < IDLE_CORES:
            return 0.0
    return cores
