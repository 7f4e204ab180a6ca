"""What samples do not show, found in untimed calls.

These are: actions that a warm call must not take, late or hidden device work, allocated memory, and cores that are busy
between calls.
"""

import random
import time

from common.checks import device_trace, guards
from common.engine.candidates import Candidate
from common.engine.inputs import InputSet
from common.engine.plan import ready
from common.engine.session import Session
from common.machine.clock import Call, Clock, now
from common.record.outcome import Cause, Finding

IDLE_S, PATIENCE_S = 0.05, 0.3  # time of a look; wait before a second look (pools of threads spin for a while)
IDLE_CORES = 0.3


def look(session: Session, clock: Clock, source: InputSet) -> dict[str, device_trace.Seen]:
    """Make one to three untimed calls of every candidate; disqualify a candidate for what a call must not do."""
    seen: dict[str, device_trace.Seen] = {}
    states = ready(session, session.remaining, session.inputs(session.job.size), source)

    def warm(each: Candidate) -> Call:
        """A call on values that the candidate has not seen."""
        source.overwrite(source, random.Random(session.rng.getrandbits(63)))
        return each.bind(source.by_label[each.label], states[each.label].state)

    for each in session.judged():
        once = session.attempt(each.label, guards.overheard, warm(each))
        again = session.ranks.any(once) and session.attempt(
            each.label, guards.overheard, warm(each)
        )  # a late start happens once
        untimely = ", ".join(sorted(once & again)) if once and again else ""
        session.disqualify(each.label, Finding(Cause.UNTIMELY, {"what": untimely}) if untimely else None)
    for each in session.judged():  # last: the profiler slows every later launch
        found = session.attempt(each.label, device_trace.look, warm(each), session.job.device, clock.name == "device")
        if found:
            seen[each.label] = found
            session.disqualify(each.label, found.outside)
    session.agree()
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
