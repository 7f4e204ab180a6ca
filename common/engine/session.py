"""What one process knows while it measures a pair: which arms remain, what was disqualified and why, the time spent."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from common.checks.global_state import Watch
from common.checks.guards import Leaks
from common.engine.arms import Invalid, LiveArm, count_costs, make_arms
from common.engine.inputs import InputSet
from common.engine.job import TURN, Job
from common.isolation.process import one_line
from common.machine.clock import now, synchronize
from common.machine.device import free_bytes
from common.pairs.pair import load
from common.record.result import CONTROL


class BaselineDisqualified(Exception):
    """Without a baseline there is nothing to compare; Session.disqualified says why."""


class DoesNotFit(Exception):
    """The work needs more memory than there is; str() says how much of each."""


def is_out_of_memory(error: BaseException) -> bool:
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "can't allocate memory" in str(error)
        or "OutOfMemoryError" in type(error).__name__
    )


@dataclass
class Session:
    """The state of a pair's measurement. `disqualified`: label -> (verdict, reason)."""

    job: Job
    say: Callable[[str, float], None]
    rng: random.Random
    arms: list[LiveArm] = field(default_factory=list)
    watch: Watch = field(default_factory=Watch)
    leaks: Leaks = field(default_factory=Leaks)
    disqualified: dict[str, tuple[str, str]] = field(default_factory=dict)
    orders: list[list[list[str]]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    voided: int = 0
    blamed: int = 0  # how often inputs were found changed
    clocks: dict[str, int] = field(default_factory=dict)  # of a GPU, when the last sample was taken
    spent_s: dict[str, float] = field(default_factory=dict)  # what for -> seconds
    _doing: str = ""
    _since: float = field(default_factory=now)

    @property
    def remaining(self) -> list[LiveArm]:
        """The arms that were not disqualified; none without a baseline."""
        return (
            [] if "baseline" in self.disqualified else [arm for arm in self.arms if arm.label not in self.disqualified]
        )

    def judged(self, libraries: bool = True) -> list[LiveArm]:
        return [arm for arm in self.remaining if arm.label != CONTROL and (libraries or not arm.is_library)]

    def disqualify(self, label: str, verdict: str, reason: str) -> None:
        self.disqualified.setdefault("baseline" if label == CONTROL else label, (verdict, reason))

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Its seconds count for `what`, and for nothing around it."""
        before, self._doing = self._doing, self._switch(what)
        try:
            yield
        finally:
            self._doing = self._switch(before)

    def _switch(self, what: str) -> str:
        moment = now()
        if self._doing:
            self.spent_s[self._doing] = self.spent_s.get(self._doing, 0.0) + moment - self._since
        self._since = moment
        return what

    def load(self) -> None:
        """Import the versions, each a suspect of its own. Raises BaselineDisqualified."""
        versions = [version for version in self.job.pair.versions if version.label in self.job.labels]
        modules = {version.label: self.attempt(version.label, partial(load, version.path)) for version in versions}
        if modules["baseline"] is None or "baseline" in self.disqualified:
            raise BaselineDisqualified
        again = load(self.job.pair.baseline.path)
        self.arms = make_arms({label: module for label, module in modules.items() if module is not None}, again)

    def inputs(self, size: str, like: InputSet | None = None) -> InputSet:
        """Fresh inputs for all remaining arms; one whose inputs differ from the baseline's is disqualified."""
        self.seeds.append(self.rng.randrange(2**31))
        with self.spending("inputs"):
            while self.remaining:
                try:
                    with self.fitting(size):
                        return InputSet(
                            self.remaining, self.job.pair.sizes[size], self.job.device, self.seeds[-1], like
                        )
                except Invalid as error:
                    self.disqualify(error.args[0], "invalid", error.args[1])
        raise BaselineDisqualified

    @contextmanager
    def fitting(self, size: str) -> Iterator[None]:
        """Memory that runs out inside disqualifies no arm. Raises DoesNotFit."""
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            free = free_bytes(self.job.device)
            there_is = "" if free is None else f"; {free / 2**30:.1f} GiB are free"
            raise DoesNotFit(f"size {size} does not fit in memory{there_is} ({one_line(error)[:160]})") from error

    def count_costs(self, inputs: InputSet) -> None:
        for label, problem in count_costs(self.remaining, inputs.by_arm).items():
            self.disqualify(label, "invalid", problem)

    def attempt(self, label: str, action: Callable[[], Any]) -> Any:
        """The action's result; an arm that raises, or changes global state, is disqualified."""
        if not self.job.tells_turns:
            return self._attempt(label, action)
        self.say(label, TURN)
        result = self._attempt(label, action)
        self.say("", TURN)  # of what fails between two turns, neither is suspected
        return result

    def _attempt(self, label: str, action: Callable[[], Any]) -> Any:
        self.watch.seeded()
        try:
            result = action()
            synchronize(self.job.device)
        except Exception as error:  # noqa: BLE001 (whatever a pair raises is its verdict, told in the table)
            synchronize(self.job.device)
            self.disqualify(label, "died", one_line(error))
            self.watch.restore(), self.leaks.new()  # it is not the next one's
            return None
        changed, leaked = self.watch.restore(), self.leaks.new()
        if changed:
            self.disqualify(label, "invalid", f"changes global state: {changed}")
        if leaked:
            self.disqualify(label, "invalid", f"leaks {leaked}")
        return result
