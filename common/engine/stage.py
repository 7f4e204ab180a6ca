"""What a stage leaves to the next (Bench), a pair's candidates while one stage works on them (Stage), its progress."""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from common.checks.global_state import GlobalState
from common.checks.guards import LeakDetector
from common.checks.kernel_memory import BadAccess, Waits, cause_of
from common.engine.candidates import Candidate, Disqualified, is_out_of_memory, make_candidates
from common.engine.inputs import InputSet
from common.engine.job import TURN, Job
from common.engine.ranks import ONE_RANK, Ranks
from common.isolation.pipe import Report
from common.isolation.worker import one_line
from common.machine.clock import now, synchronize
from common.machine.device import free_bytes
from common.pairs.pair import load
from common.pairs.syntax import ContractError
from common.record.outcome import Cause, Finding, Outcome, Verdict
from common.record.result import CONTROL


class Progress:
    """Reports progress; sums the seconds of each kind of work."""

    def __init__(self, report: Report, reports_turns: bool = False) -> None:
        self.report, self._reports_turns = report, reports_turns
        self.spent_s: dict[str, float] = {}
        self._check_fraction: float | None = None  # the fraction of the check that is done, while it lasts
        self._activity, self._since = "", now()

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Inside, seconds count for `what`, and not for an outer kind."""
        before, self._activity = self._activity, self._switch(what)
        try:
            yield
        finally:
            self._activity = self._switch(before)

    def _switch(self, what: str) -> str:
        moment = now()
        if self._activity:
            self.spent_s[self._activity] = self.spent_s.get(self._activity, 0.0) + moment - self._since
        self._since = moment
        return what

    def report_check(self, fraction: float | None) -> None:
        """This fraction of the check is done. Every call reports it again: a kernel in the interpreter may be slow."""
        self._check_fraction = fraction
        if fraction is not None:
            self.report("check", fraction)

    @contextmanager
    def turn(self, label: str) -> Iterator[None]:
        """Inside, this candidate runs. A failure between two turns makes neither a suspect."""
        self._report_turn(label)
        yield
        self.report_check(self._check_fraction)
        self._report_turn("")

    def _report_turn(self, label: str) -> None:
        if self._reports_turns:
            self.report(label, TURN)


class BaselineDisqualified(Exception):
    """Without a baseline nothing can be compared; `outcomes` has the reason."""


class DoesNotFit(Exception):
    """The work needs more memory than there is; str() has both amounts."""


def _outcome(error: BaseException) -> Outcome:
    """What an error means for the version that raised it."""
    if cause := cause_of(error, BadAccess | Waits | ContractError):
        if isinstance(cause, Waits):
            return Outcome(Verdict.SKIPPED, Finding(Cause.NEEDS, {"text": str(cause)}))
        text = one_line(cause).removeprefix(f"{type(cause).__name__}: ")
        rule = Cause.OUT_OF_BOUNDS if isinstance(cause, BadAccess) else Cause.BREAKS_CONTRACT
        return Outcome(Verdict.INVALID, Finding(rule, {"text": text}))
    facts = {"text": one_line(error) or "an error without a name", "kind": type(error).__name__}
    return Outcome(Verdict.CRASHED, Finding(Cause.RAISED, facts))


@dataclass(frozen=True)
class Bench:
    """What one stage of a measurement leaves to the next. Nothing in it changes.

    `guards`: of this process, as it was before any version was loaded. `outcomes`: why a candidate is out, by label.
    `seeds`: of all drawn inputs. `first_s`: seconds of each candidate's first setup and call.
    `shared_labels`: by size, the labels whose inputs are the baseline's.
    """

    job: Job
    progress: Progress
    ranks: Ranks = ONE_RANK
    guards: tuple[GlobalState, LeakDetector] = field(default_factory=lambda: (GlobalState(), LeakDetector()))
    candidates: tuple[Candidate, ...] = ()
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    first_s: Mapping[str, float] = field(default_factory=dict)
    shared_labels: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def remaining(self) -> list[Candidate]:
        """The candidates that are not disqualified; none without a baseline."""
        return _remaining(self.candidates, self.outcomes)

    def only(self, labels: Iterable[str]) -> "Bench":
        """With these candidates alone."""
        kept_labels = {*labels}
        candidates = [candidate for candidate in self.candidates if candidate.label in kept_labels]
        return replace(self, candidates=tuple(candidates))

    def without(self, findings: Mapping[str, Finding]) -> "Bench":
        """With further candidates disqualified as `invalid`. The first reason counts."""
        outcomes = {label: Outcome(Verdict.INVALID, finding) for label, finding in findings.items()}
        return replace(self, outcomes={**outcomes, **self.outcomes})


def _remaining(candidates: Iterable[Candidate], outcomes: Mapping[str, Outcome]) -> list[Candidate]:
    return [candidate for candidate in candidates if outcomes.keys().isdisjoint(("baseline", candidate.label))]


class Stage:
    """The candidates of a pair while one stage works on them; `end` gives what the next stage needs.

    As a context it ends quietly where the baseline is disqualified: nothing can be compared then. `disqualified`:
    label -> outcome; see `disqualify`. `ranks`: the processes that measure the pair in step. `grids`: of each untimed
    call in the interpreter by label, the programs of its largest launch and the lanes of its largest access.
    """

    def __init__(self, bench: Bench, seed: int | None = None) -> None:
        self._bench, self.job, self.progress, self.ranks = bench, bench.job, bench.progress, bench.ranks
        self.candidates, self.rng = bench.candidates, random.Random(bench.job.seed if seed is None else seed)
        self.disqualified, self.seeds = {**bench.outcomes}, [*bench.seeds]
        self.first_s, self._shared_labels = {**bench.first_s}, {**bench.shared_labels}
        self.grids: dict[str, list[tuple[int, int]]] = {}
        self._global_state, self._leaks = bench.guards
        self._complaints: dict[str, Outcome] = {}  # of this rank, until all agree on them

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, BaselineDisqualified)

    def end(self) -> Bench:
        """What this stage leaves to the next."""
        return replace(
            self._bench, candidates=self.candidates, outcomes=self.disqualified, seeds=tuple(self.seeds),
            first_s=self.first_s, shared_labels=self._shared_labels,
        )  # fmt: skip

    @property
    def remaining(self) -> list[Candidate]:
        """The candidates that are not disqualified; none without a baseline."""
        return _remaining(self.candidates, self.disqualified)

    @contextmanager
    def leaving_out(self, labels: Collection[str]) -> Iterator[None]:
        """Inside, these candidates are not there."""
        before = self.candidates
        self.candidates = tuple(candidate for candidate in before if candidate.label not in labels)
        try:
            yield
        finally:
            self.candidates = before

    def candidates_to_judge(self, libraries: bool = True) -> list[Candidate]:
        candidates = [candidate for candidate in self.remaining if candidate.label != CONTROL]
        return [candidate for candidate in candidates if libraries or not candidate.is_library]

    def disqualify(self, label: str, reason: Finding | None, verdict: Verdict = Verdict.INVALID) -> None:
        """Disqualify a candidate. The first reason counts; None changes nothing.

        In a group of ranks it counts from the next `agree` on.
        """
        if reason and label:
            self._complaints.setdefault("baseline" if label == CONTROL else label, Outcome(verdict, reason))
        if self.ranks.count == 1:
            self.agree()

    def add_facts(self, label: str, **facts: Any) -> None:
        """Further facts of why a candidate is disqualified."""
        outcome = self.disqualified.get(label)
        if outcome and outcome.reason:
            self.disqualified[label] = replace(outcome, reason=outcome.reason.with_facts(**facts))

    def agree(self) -> None:
        """Disqualify what any rank has complained of, on all ranks."""
        complaints, self._complaints = self.ranks.merge(self._complaints), {}
        for label, outcome in complaints.items():
            self.disqualified.setdefault(label, outcome)

    def import_versions(self) -> None:
        """Import the versions, one after the other. Raises BaselineDisqualified."""
        versions = [version for version in self.job.pair.versions if version.label in self.job.labels]
        imports = {version.label: self.attempt(version.label, load, version.path) for version in versions}
        modules = {label: module for label, module in imports.items() if module}
        if "baseline" in self.disqualified:
            raise BaselineDisqualified
        kernels = [version.label for version in versions if version.has_kernel]
        self.candidates = tuple(make_candidates(modules, load(self.job.pair.baseline.path), kernels))

    def inputs(self, size: str, like: InputSet | None = None) -> InputSet:
        """Fresh inputs for all remaining candidates; one whose inputs differ from the baseline's is disqualified."""
        self.seeds.append(self.rng.randrange(2**31))
        arguments, shared_labels = self.arguments(size), self._shared_labels.get(size, frozenset())
        with self.progress.spending("inputs"):
            while self.remaining:
                with self.memory_check(size):
                    inputs = InputSet(self.remaining, arguments, self.job.device, self.seeds[-1], like, shared_labels)
                    self._shared_labels[size] = inputs.shared_labels
                    return inputs
        raise BaselineDisqualified

    def arguments(self, size: str) -> dict[str, Any]:
        """The arguments of `inputs`, in a group of ranks with this rank and their number."""
        return {**self.job.pair.sizes[size], **self.ranks.rank_arguments}

    @contextmanager
    def memory_check(self, size: str) -> Iterator[None]:
        """Inside, a broken rule disqualifies; a lack of memory does not. Raises DoesNotFit."""
        try:
            yield
        except Disqualified as error:
            self.disqualify(*error.args)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            free = free_bytes(self.job.device)
            free_text = "" if free is None else f"; {free / 2**30:.1f} GiB are free"
            raise DoesNotFit(f"size {size} does not fit in memory{free_text} ({one_line(error)[:160]})") from error

    def attempt(self, label: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """The action's result. If it raises or changes global state, `label` (unless empty) is disqualified."""
        with self.progress.turn(label):
            self._global_state.accept_seed()
            try:
                result = action(*arguments)
                synchronize(self.job.device)
            except Exception as error:  # noqa: BLE001 (any error of a pair is its verdict in the table)
                synchronize(self.job.device)
                outcome = _outcome(error)
                self.disqualify(label, outcome.reason, outcome.verdict)
                self.ranks.report_error(one_line(error))
                result = None
            changes, leaks = self._global_state.restore(), self._leaks.find_new()
            self.disqualify(label, Finding(Cause.GLOBAL_STATE, {"what": changes}) if changes else None)
            self.disqualify(label, Finding(Cause.LEAKS, {"what": leaks}) if leaks else None)
        self.agree()
        return result
