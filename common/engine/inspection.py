"""A last look behind the scenes, at what samples do not show.

That is what a warm call has no business doing, late or hidden device work, memory allocated, and cores kept busy when
nothing is asked.
"""

import time

from common.checks import guards, trace
from common.engine.candidates import Candidate
from common.engine.inputs import InputSet
from common.engine.pilot import ready
from common.engine.session import Session
from common.machine.clock import Call, Clock, now

IDLE_S, PATIENCE_S = 0.05, 0.3  # how long is looked; before a second look: a pool of threads spins for a while
IDLE_CORES = 0.3


def look(session: Session, clock: Clock, source: InputSet) -> dict[str, trace.Seen]:
    """One to three untimed calls of every candidate; one that does what it should not is disqualified."""
    seen: dict[str, trace.Seen] = {}
    states = ready(session, session.remaining, session.inputs(session.job.size), source)

    def warm(each: Candidate) -> Call:
        """Its call, on values that it has not seen."""
        source.overwrite(source, session.rng)
        return each.bind(source.by_label[each.label], states[each.label].state)

    for each in session.judged():
        once = session.attempt(each.label, guards.overheard, warm(each))
        again = once and session.attempt(each.label, guards.overheard, warm(each))  # not so a library's late beginning
        untimely = ", ".join(sorted(once & again)) if again else ""
        session.disqualify(each.label, untimely and f"every call, however warm, {untimely} inside the timed region")
    for each in session.judged():  # last, as the profiler slows every later launch
        found = session.attempt(each.label, trace.look, warm(each), session.job.device, clock.name == "device")
        if found:
            seen[each.label] = found
            session.disqualify(each.label, found.outside or "")
    return seen


def cores_when_idle() -> float:
    """How many cores this process keeps busy while nothing is asked of it."""
    for before_s in (0.0, PATIENCE_S):
        time.sleep(before_s)
        busy, begin = time.process_time(), now()
        time.sleep(IDLE_S)
        cores = (time.process_time() - busy) / (now() - begin)
        if cores < IDLE_CORES:
            return 0.0
    return cores
