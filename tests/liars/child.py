"""What is done in a pair's own process before it is measured there: it sees nothing of what a test patches in its own.

These stand in for `runner._child_main`, which pickles them by name.
"""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from common.engine import confirm_alone, runner
from common.engine.job import AloneRequest, AloneResult, Job
from common.isolation import worker
from common.record.result import PairResult

Measure = Callable[[Job, AloneRequest | None, worker.ParentPipe], PairResult | AloneResult]


def measure_quickly(job: Job, request: AloneRequest | None, line: worker.ParentPipe) -> PairResult | AloneResult:
    """Smaller batches and fewer rounds: times are coarser, which no liar is told by. No core is ever too hot."""
    from common.engine import plan
    from common.machine import clock

    clock.LEAST_WALL_S["cpu"] = 50e-6
    plan.ROUNDS = dict.fromkeys(plan.ROUNDS, 2)
    _throttle(lambda: 0)
    return runner._child_main(job, request, line)


def _throttle(count: Callable[[], int]) -> None:
    """Whatever becomes of this machine's cores, this is how often they were throttled."""
    from common.machine import throttling

    throttling.CORES = SimpleNamespace(glob=lambda pattern: [SimpleNamespace(read_text=lambda: f"{count()}\n")])


def measured(pairs: Any, patch: Any, measure: Measure, settled: Any = None, **options: Any) -> Any:
    """The record of these pairs (on the CPU unless said otherwise), each measured by `measure` in its process.

    Unless `settled` is given nobody runs alone: who is caught here is caught beside others.
    """
    patch.setattr(runner, "_child_main", measure)
    patch.setattr(confirm_alone, "confirm_result", settled or (lambda job, result, call: result))
    return runner.run_pairs(pairs, **{"device": "cpu", "fast": True, **options})


def measure_notebooks_quickly() -> None:
    """What the pairs of this process, a notebook's kernel, are measured by: quickly, and nobody alone."""
    runner._child_main = measure_quickly
    confirm_alone.confirm_result = lambda job, result, call: result


class World:
    """Time that passes in naps only, and by a `tick` whenever the clock is read: what is measured in it is known.

    Every thread that there is keeps a core busy meanwhile. `slowness` is what the machine does to all that runs on it.
    """

    tick = 1e-9
    is_random = False  # are the orders and values others in each run?

    def __init__(self) -> None:
        self.moment, self.core_seconds, self.naps, self.since_break = 0.0, 0.0, 0, 0
        self.throttled = 0  # how often a core was, for heat
        self.others = threading.active_count() - 1  # who sleeps

    def now(self) -> float:
        self.moment += self.tick
        return self.moment

    def nap(self, seconds: float) -> None:
        self.moment += seconds * self.slowness()
        self.core_seconds += seconds * self.slowness() * (threading.active_count() - self.others)
        self.naps += 1
        self.since_break += 1

    def rest(self) -> None:
        """Between two rounds, while the inputs are overwritten."""
        self.since_break = 0

    def slowness(self) -> float:
        return 1.0


class RandomWorld(World):
    is_random = True


class CoarseClock(World):
    tick = 1e-6


class WarmsUp(World):
    """It gets hotter, and slower, from beginning to end."""

    def slowness(self) -> float:
        return 1 + 2 * self.moment


class BusyNeighbour(World):
    """Somebody else works for 30 of every 70 ms."""

    def slowness(self) -> float:
        return 1.5 if self.moment % 0.070 < 0.030 else 1.0


class Outliers(World):
    def slowness(self) -> float:
        return 20.0 if self.naps % 13 == 3 else 1.0


class Uneven(Outliers):
    """No two naps in a row take the same time."""

    def slowness(self) -> float:
        return super().slowness() * (1 + 0.02 * (self.naps * 5 % 11) / 11)


class ColdStart(World):
    """Whoever comes first after a break waits for the caches."""

    def slowness(self) -> float:
        return 1.0 if self.since_break else 1.5


class TiresInARound(World):
    """Every nap since the last break has made the next one longer."""

    def slowness(self) -> float:
        return 1 + 0.1 * self.since_break


# Rounds in which a core gets too hot, and what that does to all that runs: nobody may ask whether it suits him
HOT = {1: 0.5, 2: 3.0, 13: 1.0, **dict.fromkeys(range(20, 25), 0.5)}  # of five a block: one is lost as a whole
BUSY = {6: 3.0}  # as slow, but cool


BLOCK = 5  # rounds


class SlowAtFirst(World):
    """In the rounds of the first block."""

    rounds = 0

    def rest(self) -> None:
        super().rest()
        self.rounds += 1

    def slowness(self) -> float:
        return 12.0 if 0 < self.rounds <= BLOCK else 1.0


class HotAtTimes(World):
    """Of its rounds, as told by the breaks between them, some are hot."""

    def __init__(self) -> None:
        super().__init__()
        self.round = -1 - BLOCK  # the first one is forgotten

    def rest(self) -> None:
        super().rest()
        self.round += 1

    def nap(self, seconds: float) -> None:
        super().nap(seconds)
        self.throttled += self.is_hot()

    def is_hot(self) -> bool:
        return self.round in HOT

    def slowness(self) -> float:
        return {**HOT, **BUSY}.get(self.round, 1.0)


class HotAlways(HotAtTimes):
    def is_hot(self) -> bool:
        return True


def measure_in(
    world: type[World], job: Job, request: AloneRequest | None, line: worker.ParentPipe
) -> PairResult | AloneResult:
    """By the clock of such a world, in which `time.sleep` is a nap."""
    import time

    from common.engine import conclude, inputs, plan, untimed_checks
    from common.engine import measure as measuring
    from common.machine import clock

    here, overwrite = world(), inputs.InputSet.overwrite
    plan.ROUNDS = dict.fromkeys(plan.ROUNDS, 5)  # which HOT counts with

    def overwrite_in_peace(self: Any, *arguments: Any) -> None:
        here.rest()
        overwrite(self, *arguments)

    clock.now, clock._cpu_time, time.sleep = here.now, lambda: here.core_seconds, here.nap
    plan.now = here.now  # which has bound the other's
    _throttle(lambda: here.throttled)
    inputs.InputSet.overwrite = overwrite_in_peace
    plan.needs_whole_draws = lambda stage, source: False  # by one more
    if not here.is_random:
        measuring.secrets = SimpleNamespace(randbits=lambda bits: job.seed)
    untimed_checks.cores_when_idle = lambda: 0.0  # here who sleeps is busy
    conclude.measure_limits = lambda device: {}  # no clock of this world can measure one
    clock.LEAST_WALL_S["cpu"] = 20e-6
    return runner._child_main(job, request, line)
