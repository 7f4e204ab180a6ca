"""A last look behind the scenes, at what samples do not show.

That is what a warm call has no business doing, late or hidden device work, memory allocated, and cores kept busy when
nothing is asked.
"""

import time

from common.checks import guards, trace
from common.engine.candidates import Candidate
from common.engine.inputs import InputSet
from common.engine.pilot import Ready, ready
from common.engine.session import Session
from common.machine.clock import Clock, now

IDLE_S, PATIENCE_S = 0.05, 0.3  # how long is looked; before a second look: a pool of threads spins for a while
IDLE_CORES = 0.3


def look(session: Session, clock: Clock, source: InputSet) -> dict[str, trace.Seen]:
    """One to three untimed calls of every candidate; one that does what it should not is disqualified."""
    seen: dict[str, trace.Seen] = {}
    states = ready(session, session.remaining, session.inputs(session.job.size), source)
    for each in session.judged():
        once = _overheard(session, each, states, source)  # which may be a library's own late beginning: then not twice
        untimely = ", ".join(sorted(once & _overheard(session, each, states, source))) if once else ""
        session.disqualify(each.label, untimely and f"every call, however warm, {untimely} inside the timed region")
    for each in session.judged():  # last, as the profiler slows every later launch
        source.overwrite(source, session.rng)
        call = each.bind(source.by_label[each.label], states[each.label].state)
        found = session.attempt(each.label, trace.look, call, session.job.device, clock.name == "device")
        if found:
            seen[each.label] = found
            session.disqualify(each.label, found.outside or "")
    return seen


def _overheard(session: Session, who: Candidate, states: dict[str, Ready], source: InputSet) -> set[str]:
    """What an untimed call, on values that it has not seen, does that a warm one should not."""
    source.overwrite(source, session.rng)
    call = who.bind(source.by_label[who.label], states[who.label].state)
    return session.attempt(who.label, guards.overheard, call) or set()


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
