"""What samples do not show, found in untimed calls.

These are: actions that a warm call must not take, late or hidden device work, allocated memory, and cores that are busy
between calls.
"""

import random
import time
from dataclasses import replace

from common.checks import device_trace, guards
from common.engine.candidates import Candidate
from common.engine.check import count_sent
from common.engine.inputs import InputSet
from common.engine.plan import Prepared, ready
from common.engine.sampling import Samples
from common.engine.stage import Bench, Stage
from common.machine.clock import Call, Clock, now
from common.record.outcome import Cause, Finding

IDLE_S, PATIENCE_S = 0.05, 0.3  # time of a look; wait before a second look (pools of threads spin for a while)
IDLE_CORES = 0.3


def look_closely(bench: Bench, prepared: Prepared, samples: Samples) -> tuple[Bench, Samples]:
    """What is sent and done in untimed calls, if anything was sampled."""
    if not samples.blocks:
        return bench, samples
    with Stage(bench, prepared.seed + 1) as stage, stage.progress.spending("verify"):
        sent = count_sent(stage, stage.inputs(stage.job.size), prepared.source)
        samples = replace(samples, sent=sent, seen=look(stage, prepared.clock, prepared.source))
    return stage.end(), samples


def look(stage: Stage, clock: Clock, source: InputSet) -> dict[str, device_trace.CallTrace]:
    """Make one to three untimed calls of every candidate; disqualify a candidate for what a call must not do."""
    seen: dict[str, device_trace.CallTrace] = {}
    states = ready(stage, stage.remaining, stage.inputs(stage.job.size), source)

    def warm(each: Candidate) -> Call:
        """A call on values that the candidate has not seen."""
        source.overwrite(source, random.Random(stage.rng.getrandbits(63)))
        return each.bind(source.by_label[each.label], states[each.label].state)

    for each in stage.judged():
        once = stage.attempt(each.label, guards.untimely_actions, warm(each))
        again = stage.ranks.any(once) and stage.attempt(
            each.label, guards.untimely_actions, warm(each)
        )  # a late start happens once
        untimely = ", ".join(sorted(once & again)) if once and again else ""
        stage.disqualify(each.label, Finding(Cause.UNTIMELY, {"what": untimely}) if untimely else None)
    for each in stage.judged():  # last: the profiler slows every later launch
        found = stage.attempt(each.label, device_trace.trace_call, warm(each), stage.job.device, clock.name == "device")
        if found:
            seen[each.label] = found
            stage.disqualify(each.label, found.outside)
    stage.agree()
    return seen


def cores_when_idle() -> float:
    """The number of cores that this process keeps busy between calls."""
    for before_s in (0.0, PATIENCE_S):
        time.sleep(before_s)
        busy, begin = time.process_time(), now()
        time.sleep(IDLE_S)
        cores = (time.process_time() - busy) / (now() - begin)
        if cores < IDLE_CORES:
            return 0.0
    return cores
