"""What one process knows while it measures a pair: which arms remain, what was disqualified and why, the time spent."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from common.checks.global_state import Watch
from common.checks.guards import Leaks
from common.engine.arms import Invalid, LiveArm, count_costs, make_arms
from common.engine.inputs import InputSet
from common.engine.job import TURN, Job
from common.isolation.process import Say, one_line
from common.machine.clock import now, synchronize
from common.machine.device import free_bytes
from common.pairs.pair import load
from common.record.result import CONTROL


class BaselineDisqualified(Exception):
    """Without a baseline there is nothing to compare; Session.disqualified says why."""


class DoesNotFit(Exception):
    """The work needs more memory than there is; str() says how much of each."""


def is_out_of_memory(error: BaseException) -> bool:
    by_name = "can't allocate memory" in str(error) or "OutOfMemoryError" in type(error).__name__
    return by_name or isinstance(error, MemoryError | torch.OutOfMemoryError)


@dataclass
class Session:
    """The state of a pair's measurement. `disqualified`: label -> (verdict, reason)."""

    job: Job
    say: Say
    rng: random.Random
    arms: list[LiveArm] = field(default_factory=list)
    watch: Watch = field(default_factory=Watch)
    leaks: Leaks = field(default_factory=Leaks)
    disqualified: dict[str, tuple[str, str]] = field(default_factory=dict)
    orders: list[list[list[str]]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    voided: int = 0
    errors: dict[str, float] = field(default_factory=dict)  # the baseline's at the timed size, by path of its answer
    blamed: int = 0  # how often inputs were found changed
    clocks: dict[str, int] = field(default_factory=dict)  # of a GPU, when the last sample was taken
    spent_s: dict[str, float] = field(default_factory=dict)  # what for -> seconds
    _checking: float | None = None  # how much of the check is done, while it lasts
    _doing: str = ""
    _since: float = field(default_factory=now)

    @property
    def remaining(self) -> list[LiveArm]:
        """The arms that were not disqualified; none without a baseline."""
        return [arm for arm in self.arms if self.disqualified.keys().isdisjoint(("baseline", arm.label))]

    def judged(self, libraries: bool = True) -> list[LiveArm]:
        return [arm for arm in self.remaining if arm.label != CONTROL and (libraries or not arm.is_library)]

    def disqualify(self, label: str, reason: str, verdict: str = "invalid") -> None:
        """For its first reason; without one (an empty string) the arm remains."""
        if reason:
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

    def checking(self, fraction: float | None) -> None:
        """So much of the check is done; every call of it says so again, as a kernel in the interpreter may be slow."""
        self._checking = fraction
        if fraction is not None:
            self.say("check", fraction)

    def load(self) -> None:
        """Import the versions, each a suspect of its own. Raises BaselineDisqualified."""
        versions = [version for version in self.job.pair.versions if version.label in self.job.labels]
        modules = {version.label: self.attempt(version.label, load, version.path) for version in versions}
        if "baseline" in self.disqualified:
            raise BaselineDisqualified
        again = load(self.job.pair.baseline.path)
        self.arms = make_arms({label: module for label, module in modules.items() if module is not None}, again)
        for arm in self.arms:
            arm.has_kernel = any(version.has_kernel for version in versions if version.label == arm.label)

    def inputs(self, size: str, like: InputSet | None = None) -> InputSet:
        """Fresh inputs for all remaining arms; one whose inputs differ from the baseline's is disqualified."""
        self.seeds.append(self.rng.randrange(2**31))
        arguments = self.job.pair.sizes[size]
        with self.spending("inputs"):
            while self.remaining:
                try:
                    with self.fitting(size):
                        return InputSet(self.remaining, arguments, self.job.device, self.seeds[-1], like)
                except Invalid as error:
                    self.disqualify(*error.args)
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
            self.disqualify(label, problem)

    def attempt(self, label: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """The action's result; an arm that raises, or changes global state, is disqualified."""
        self._tell_turn(label)
        self.watch.seeded()
        try:
            result = action(*arguments)
            synchronize(self.job.device)
        except Exception as error:  # noqa: BLE001 (whatever a pair raises is its verdict, told in the table)
            synchronize(self.job.device)
            self.disqualify(label, one_line(error) or "an error without a name", "died")
            result = None
        changed, leaked = self.watch.restore(), self.leaks.new()  # it is not the next one's
        self.disqualify(label, changed and f"changes global state: {changed}")
        self.disqualify(label, leaked and f"leaks {leaked}")
        self.checking(self._checking)
        self._tell_turn("")  # of what fails between two turns, neither is suspected
        return result

    def _tell_turn(self, label: str) -> None:
        if self.job.tells_turns:
            self.say(label, TURN)
