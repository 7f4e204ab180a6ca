"""A last look behind the scenes, at what the samples do not show.

That is what a warm call has no business doing, late or hidden device work, and memory allocated.
"""

import statistics

from common.checks import guards, trace
from common.engine.arms import LiveArm
from common.engine.inputs import InputSet
from common.engine.session import Session
from common.machine.clock import Clock
from common.record import stats

TAIL_S, TAIL_SHARE = 30e-6, 0.02  # a device that works on for longer, usually, after the clock stopped was not joined


def look(session: Session, clock: Clock, source: InputSet) -> None:
    """One to three untimed calls of every arm; who does what it should not is out."""
    timed = [arm for arm in session.judged() if arm.seconds]
    for arm in timed:
        once = _overheard(session, arm, source)  # which may be a library's own late beginning: then not twice
        untimely = ", ".join(sorted(once & _overheard(session, arm, source))) if once else ""
        session.disqualify(arm.label, untimely and f"every call, however warm, {untimely} inside the timed region")
    for arm in timed:  # last, as the profiler slows every later launch
        call = arm.bind(source.by_arm[arm.label])
        seen = session.attempt(arm.label, trace.look, call, session.job.device, clock.name == "device")
        if seen is None:
            continue
        arm.allocated_bytes, arm.peak_bytes = seen.allocated_bytes, seen.peak_bytes
        arm.traced = seen.outside is not None
        tail_s, seconds = statistics.median(arm.tails), stats.overall_median(arm.seconds)
        session.disqualify(arm.label, seen.outside or "")
        if not arm.traced and tail_s > max(TAIL_S, TAIL_SHARE * seconds):
            late = f"its device works on for {tail_s * 1e6:.0f} us after the clock stopped"
            session.disqualify(arm.label, f"{late}: a stream is not joined")


def _overheard(session: Session, arm: LiveArm, source: InputSet) -> set[str]:
    """What an untimed call, on values that it has not seen, does that a warm one should not."""
    source.overwrite(source, session.rng)
    return session.attempt(arm.label, guards.overheard, arm.bind(source.by_arm[arm.label])) or set()
