"""Measure one pair in its own process: candidates -> checks -> plan -> samples -> conclusion.

Each stage returns a value that the next one reads; common/engine/__init__.py follows a pair through them.
"""

import importlib
import random
import secrets
from contextlib import suppress
from dataclasses import replace

from common.checks import guards
from common.engine import untimed_checks
from common.engine.candidates import count_costs
from common.engine.check import check, check_one_less
from common.engine.comm_check import count_sent
from common.engine.conclude import pair_result
from common.engine.job import Job
from common.engine.plan import plan
from common.engine.ranks import ONE, Ranks
from common.engine.sampling import Samples, sample_blocks
from common.engine.session import BaselineDisqualified, Session
from common.isolation.worker import Say
from common.machine.clock import Clock, GroupClock, make_clock
from common.machine.device import use_device
from common.record.result import CONTROL, PairResult


def measure(job: Job, say: Say, ranks: Ranks = ONE) -> PairResult:
    """Do everything that the job asks. `say(stage, fraction)` reports progress. Raises what `inputs` raises."""
    session, samples = loaded(job, say, ranks), Samples()
    with suppress(BaselineDisqualified):
        check(session)
        if _keep_timed(session):
            samples = _timed(session)
    return pair_result(session, samples)


def loaded(job: Job, say: Say, ranks: Ranks = ONE) -> Session:
    """A session with the pair's candidates; without any if the baseline cannot be loaded."""
    say("load", 0.0)
    use_device(job.device, ranks.count)
    session = Session(job, say, ranks=ranks)
    with session.progress.spending("load"), suppress(BaselineDisqualified):
        if any("cupy" in version.imports for version in job.pair.versions if version.label in job.labels):
            importlib.import_module("cupy")  # now: its random numbers can be seeded only once it is imported
        session.load()
        use_device(job.device, ranks.count)  # also CuPy
        guards.listen_to_triton()
    return session


def clock_of(session: Session) -> Clock:
    """The device's clock on a GPU, unless the pair asks for the wall clock."""
    on_gpu = session.job.info["kind"] == "cuda"
    name = getattr(session.candidates[0].module, "CLOCK", "device") if on_gpu else "wall"
    clock = make_clock(name, session.job.device, session.ranks.together)
    return clock if session.ranks.count == 1 else GroupClock(clock, session.ranks.share)


def _keep_timed(session: Session) -> bool:
    """Keep the candidates to be timed. Returns whether there is a baseline and something to compare with it."""
    believed = set(session.job.timed) - session.disqualified.keys()
    session.keep([*session.job.timed, CONTROL, *(each.label for each in session.candidates if each.is_library)])
    return "baseline" in believed and len(believed) > 1


def _timed(session: Session) -> Samples:
    job, seed = session.job, session.ranks.first(secrets.randbits(64))
    session.rng = random.Random(seed)  # an earlier run's saved answers are then of other inputs
    with session.progress.spending("warm-up"):
        clock = clock_of(session)
        source = session.inputs(session.job.size)
        costs, wrong = count_costs(session.remaining, source.by_label, timed=True)
        for label, problem in wrong.items():
            session.disqualify(label, problem)
        session.agree()
        planned = session.ranks.first(plan(session, clock, source))
        with session.progress.spending("stress"):
            check_one_less(session)
    samples = sample_blocks(session, clock, planned, costs, source)
    with session.progress.spending("verify"):
        sent = count_sent(session, session.inputs(job.size), source) if samples.blocks else {}
        return replace(samples, sent=sent, seen=untimed_checks.look(session, clock, source) if samples.blocks else {})
