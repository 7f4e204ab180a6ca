"""The candidates that remain in a measurement, and why others were disqualified; shared by all stages."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from common.checks.global_state import Watch
from common.checks.guards import Leaks
from common.checks.out_of_bounds import OutOfBounds
from common.engine.candidates import Candidate, Disqualified, make_candidates
from common.engine.inputs import InputSet
from common.engine.job import Job
from common.engine.ranks import ONE, Ranks
from common.engine.stage_times import Progress
from common.isolation.worker import Say, one_line
from common.machine.clock import synchronize
from common.machine.device import free_bytes
from common.pairs.pair import load
from common.pairs.syntax import ContractError
from common.record.result import CONTROL


class BaselineDisqualified(Exception):
    """Without a baseline nothing can be compared; Session.disqualified has the reason."""


class DoesNotFit(Exception):
    """The work needs more memory than there is; str() has both amounts."""


def is_out_of_memory(error: BaseException) -> bool:
    by_name = "can't allocate memory" in str(error) or "OutOfMemoryError" in type(error).__name__
    return by_name or isinstance(error, MemoryError | torch.OutOfMemoryError)


def _told(error: BaseException) -> tuple[str, str]:
    """What an error says, in one line, and the verdict that it means."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, OutOfBounds | ContractError):
        cause = cause.__cause__  # Triton's interpreter raises its own error from the kernel's
    if cause:
        return one_line(cause).removeprefix(f"{type(cause).__name__}: "), "invalid"
    return one_line(error) or "an error without a name", "crashed"


class Session:
    """The candidates of a pair in this process. `disqualified`: label -> (verdict, reason); see `disqualify`.

    `seeds`: of all drawn inputs. `first_s`: seconds of each candidate's first setup and call. `ranks`: the processes
    that measure the pair in step.
    """

    def __init__(self, job: Job, say: Say, candidates: tuple[Candidate, ...] = (), ranks: Ranks = ONE) -> None:
        self.job, self.progress, self.ranks = job, Progress(say, job.tells_turns), ranks
        self._complaints: dict[str, tuple[str, str]] = {}  # of this rank, until all agree on them
        self.candidates, self.rng = candidates, random.Random(job.seed)
        self.disqualified: dict[str, tuple[str, str]] = {}
        self.seeds: list[int] = []
        self.first_s: dict[str, float] = {}
        self._shared: dict[str, frozenset[str]] = {}  # by size
        self._watch, self._leaks = Watch(), Leaks()

    @property
    def remaining(self) -> list[Candidate]:
        """The candidates that are not disqualified; none without a baseline."""
        return [each for each in self.candidates if self.disqualified.keys().isdisjoint(("baseline", each.label))]

    def judged(self, libraries: bool = True) -> list[Candidate]:
        return [each for each in self.remaining if each.label != CONTROL and (libraries or not each.is_library)]

    def disqualify(self, label: str, reason: str, verdict: str = "invalid") -> None:
        """Disqualify a candidate. The first reason counts; an empty reason changes nothing.

        In a group of ranks it counts from the next `agree` on.
        """
        if reason and label:
            self._complaints.setdefault("baseline" if label == CONTROL else label, (verdict, reason))
        if self.ranks.count == 1:
            self.agree()

    def agree(self) -> None:
        """Disqualify what any rank has complained of, on all ranks."""
        found, self._complaints = self.ranks.merged(self._complaints), {}
        for label, why in found.items():
            self.disqualified.setdefault(label, why)

    def load(self) -> None:
        """Import the versions, one after the other. Raises BaselineDisqualified."""
        versions = [version for version in self.job.pair.versions if version.label in self.job.labels]
        modules = {each.label: module for each in versions if (module := self.attempt(each.label, load, each.path))}
        if "baseline" in self.disqualified:
            raise BaselineDisqualified
        kernels = [version.label for version in versions if version.has_kernel]
        self.candidates = tuple(make_candidates(modules, load(self.job.pair.baseline.path), kernels))

    def keep(self, labels: list[str]) -> None:
        """Measure only these from here on."""
        self.candidates = tuple(each for each in self.candidates if each.label in labels)

    def inputs(self, size: str, like: InputSet | None = None) -> InputSet:
        """Fresh inputs for all remaining candidates; one whose inputs differ from the baseline's is disqualified."""
        self.seeds.append(self.rng.randrange(2**31))
        arguments, shared = self.arguments(size), self._shared.get(size, frozenset())
        with self.progress.spending("inputs"):
            while self.remaining:
                with self.fitting(size):
                    drawn = InputSet(self.remaining, arguments, self.job.device, self.seeds[-1], like, shared)
                    self._shared[size] = drawn.shared
                    return drawn
        raise BaselineDisqualified

    def arguments(self, size: str) -> dict[str, Any]:
        """The arguments of `inputs`, in a group of ranks with this rank and their number."""
        return {**self.job.pair.sizes[size], **self.ranks.place}

    @contextmanager
    def fitting(self, size: str) -> Iterator[None]:
        """Inside, a broken rule disqualifies; a lack of memory does not. Raises DoesNotFit."""
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
        """The action's result. If it raises or changes global state, `label` (unless empty) is disqualified."""
        with self.progress.turn(label):
            self._watch.seeded()
            try:
                result = action(*arguments)
                synchronize(self.job.device)
            except Exception as error:  # noqa: BLE001 (any error of a pair is its verdict in the table)
                synchronize(self.job.device)
                told, verdict = _told(error)
                self.disqualify(label, told, verdict)
                self.ranks.raised(told)
                result = None
            changed, leaked = self._watch.restore(), self._leaks.new()
            self.disqualify(label, changed and f"changes global state: {changed}")
            self.disqualify(label, leaked and f"leaks {leaked}")
        self.agree()
        return result
