"""Who is still in a pair's measurement, and why others are not: what a stage hands to the next besides its result."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from common.checks.guards import Leaks
from common.checks.settings import Watch
from common.engine.candidates import Candidate, Disqualified, make_candidates
from common.engine.inputs import InputSet
from common.engine.job import Job
from common.engine.progress import Progress
from common.isolation.process import Say, one_line
from common.machine.clock import synchronize
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


class Session:
    """The candidates of a pair in this process. `disqualified`: label -> (verdict, reason), as `disqualify` says.

    `seeds`: of all inputs that were drawn. `first_s`: what each one's first set-up and call took.
    """

    def __init__(self, job: Job, say: Say, candidates: tuple[Candidate, ...] = ()) -> None:
        self.job, self.progress = job, Progress(say, job.tells_turns)
        self.candidates, self.rng = candidates, random.Random(job.seed)
        self.disqualified: dict[str, tuple[str, str]] = {}
        self.seeds: list[int] = []
        self.first_s: dict[str, float] = {}
        self._shared: dict[str, frozenset[str]] = {}  # by size
        self._watch, self._leaks = Watch(), Leaks()

    @property
    def remaining(self) -> list[Candidate]:
        """Those that were not disqualified; none without a baseline."""
        return [each for each in self.candidates if self.disqualified.keys().isdisjoint(("baseline", each.label))]

    def judged(self, libraries: bool = True) -> list[Candidate]:
        return [each for each in self.remaining if each.label != CONTROL and (libraries or not each.is_library)]

    def disqualify(self, label: str, reason: str, verdict: str = "invalid") -> None:
        """For its first reason; without one (an empty string) it remains."""
        if reason and label:
            self.disqualified.setdefault("baseline" if label == CONTROL else label, (verdict, reason))

    def load(self) -> None:
        """Import the versions, each a suspect of its own. Raises BaselineDisqualified."""
        versions = [version for version in self.job.pair.versions if version.label in self.job.labels]
        modules = {each.label: module for each in versions if (module := self.attempt(each.label, load, each.path))}
        if "baseline" in self.disqualified:
            raise BaselineDisqualified
        kernels = [version.label for version in versions if version.has_kernel]
        self.candidates = tuple(make_candidates(modules, load(self.job.pair.baseline.path), kernels))

    def keep(self, labels: list[str]) -> None:
        """These alone are measured from here on."""
        self.candidates = tuple(each for each in self.candidates if each.label in labels)

    def inputs(self, size: str, like: InputSet | None = None) -> InputSet:
        """Fresh inputs for all that remain; one whose inputs differ from the baseline's is disqualified."""
        self.seeds.append(self.rng.randrange(2**31))
        arguments, shared = self.job.pair.sizes[size], self._shared.get(size, frozenset())
        with self.progress.spending("inputs"):
            while self.remaining:
                with self.fitting(size):
                    drawn = InputSet(self.remaining, arguments, self.job.device, self.seeds[-1], like, shared)
                    self._shared[size] = drawn.shared
                    return drawn
        raise BaselineDisqualified

    @contextmanager
    def fitting(self, size: str) -> Iterator[None]:
        """One that breaks a rule inside is out; memory that runs out disqualifies nobody. Raises DoesNotFit."""
        try:
            yield
        except Disqualified as error:
            self.disqualify(*error.args)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            free = free_bytes(self.job.device)
            there_is = "" if free is None else f"; {free / 2**30:.1f} GiB are free"
            raise DoesNotFit(f"size {size} does not fit in memory{there_is} ({one_line(error)[:160]})") from error

    def attempt(self, label: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """The action's result; one that raises, or changes global state, is disqualified (without a label: nobody)."""
        with self.progress.turn(label):
            self._watch.seeded()
            try:
                result = action(*arguments)
                synchronize(self.job.device)
            except Exception as error:  # noqa: BLE001 (whatever a pair raises is its verdict, told in the table)
                synchronize(self.job.device)
                self.disqualify(label, one_line(error) or "an error without a name", "died")
                result = None
            changed, leaked = self._watch.restore(), self._leaks.new()
            self.disqualify(label, changed and f"changes global state: {changed}")
            self.disqualify(label, leaked and f"leaks {leaked}")
        return result
