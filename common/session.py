"""What one process knows while it measures a pair: the arms still in the race, who is out and why, seeds, traces."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from common import guard
from common.arms import InputSet, Invalid, LiveArm, oracle, unwritable
from common.arrays import Tree, clone, difference, map_arrays, overlapping
from common.clock import now, synchronize
from common.device import free_bytes
from common.pair import Pair
from common.process import one_line
from common.verify import compare


@dataclass(frozen=True)
class Job:
    """What one process is asked to do. `labels`: the halves to load; `timed`: those to time, not only to check."""

    pair: Pair
    size: str
    device: str
    info: dict[str, Any]
    limits: dict[str, Any]
    labels: list[str]
    timed: list[str]
    blocks: int | None = None  # None: the pilot decides
    seed: int = 0


class NobodyLeft(Exception):
    """The baseline is out of the race; Session.bad says why."""


class DoesNotFit(Exception):
    """The inputs need more memory than there is; str() says how much of each."""


def is_out_of_memory(error: BaseException) -> bool:
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "can't allocate memory" in str(error)
        or "OutOfMemoryError" in type(error).__name__
    )


@dataclass
class Session:
    """The state of a pair's measurement. `bad`: label -> (verdict, reason) of arms that are out of the race."""

    job: Job
    say: Callable[[str, float], None]
    arms: list[LiveArm]
    rng: random.Random
    before: dict[str, Any] = field(default_factory=guard.snapshot)
    threads: set[threading.Thread] = field(default_factory=lambda: set(threading.enumerate()))
    bad: dict[str, tuple[str, str]] = field(default_factory=dict)
    orders: list[list[list[str]]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    voided: int = 0
    blamed: int = 0  # how often inputs were found changed
    spent_s: dict[str, float] = field(default_factory=dict)

    @property
    def racing(self) -> list[LiveArm]:
        """The arms that are still in; none without a baseline."""
        return [] if "baseline" in self.bad else [arm for arm in self.arms if arm.label not in self.bad]

    @property
    def contenders(self) -> list[LiveArm]:
        return [arm for arm in self.racing if arm.label != "repeat"]

    def out(self, label: str, verdict: str, reason: str) -> None:
        self.bad.setdefault("baseline" if label == "repeat" else label, (verdict, reason))

    def inputs(self, size: str, like: InputSet | None = None) -> InputSet:
        """Fresh inputs for all arms in the race; an arm whose inputs are others than the baseline's is out."""
        self.seeds.append(self.rng.randrange(2**31))
        while self.racing:
            try:
                return InputSet(self.racing, self.job.pair.sizes[size], self.job.device, self.seeds[-1], like)
            except Invalid as error:
                self.out(error.args[0], "invalid", error.args[1])
            except (MemoryError, RuntimeError) as error:
                if is_out_of_memory(error):
                    free = free_bytes(self.job.device)
                    there_is = "" if free is None else f"; {free / 2**30:.1f} GiB are free"
                    why = one_line(error)[:160]
                    raise DoesNotFit(f"size {size} does not fit in memory{there_is} ({why})") from error
                raise
        raise NobodyLeft

    def attempt(self, arm: LiveArm, action: Callable[[], Any]) -> Any:
        """The action's result; an arm that raises or leaves traces is out (a broken device ends the whole process)."""
        try:
            result = action()
            synchronize(self.job.device)
        except Exception as error:  # noqa: BLE001 (whatever a pair raises is its verdict, told in the table)
            synchronize(self.job.device)
            self.out(arm.label, "died", one_line(error))
            return None
        traces = guard.restore_changes(self.before) or guard.new_threads(self.threads)
        if traces:
            self.out(arm.label, "invalid", f"leaves global state or threads behind: {traces}")
            self.threads |= set(threading.enumerate())  # charged once
        return result

    def fresh_answer(self, arm: LiveArm, inputs: InputSet, other: InputSet, filled: bool) -> Tree:
        """One untimed set-up and call, from poisoned outputs; `filled`: uninitialized memory holds NaN.

        An arm that changes its inputs, or returns a part of them where the baseline does not, is out.
        """
        mine = inputs.by_arm[arm.label]

        def action() -> Tree:
            guard.poison_outputs(mine)
            begin = now()
            with guard.filled_memory(filled):
                arm.prepare(other.by_arm[arm.label], mine)
                call = arm.bind(mine)
                answer = call()
                copy = clone(answer)
            shortened = difference(mine, {name: call.keywords[name] for name in mine})
            if shortened:
                self.out(arm.label, "invalid", f"changed its input: it {shortened}")
            arm.compile_s = arm.compile_s or now() - begin
            arm.returns = overlapping(unwritable(mine), answer)
            return copy

        answer = self.attempt(arm, action)
        found = inputs.violation()
        if found:
            inputs.restore()
            self.out(arm.label, "invalid", f"changed its input `{found[0]}`")
        if arm.returns and not self.arms[0].returns:
            self.out(arm.label, "invalid", f"returns memory of its input `{arm.returns}`")
        return answer

    def problem(self, arm: LiveArm, out: Tree, truth: Tree, base: Tree, rows: int | None = None) -> str:
        """What is wrong with an answer (its leading `rows`); `base`, the baseline's, sets dtype and accepted error."""
        if arm.differs or arm.label in self.bad:
            return ""
        mine, model = (map_arrays(lambda x: x[:rows], tree) for tree in (out, base)) if rows else (out, base)
        return compare(mine, truth, model, arm.precision, arm.tolerance)

    def compare_all(self, answers: dict[str, Tree], inputs: InputSet) -> None:
        """The timed answers of a round against the baseline's."""
        if "baseline" not in answers:
            return
        others = [arm for arm in self.racing if arm.label in answers and arm.label != "baseline"]
        wrong = {arm.label: self.problem(arm, answers[arm.label], answers["baseline"], None) for arm in others}
        if any(wrong.values()) and self.blame(inputs, self.job.size):
            return  # somebody changed the inputs: nobody's answer says anything
        for label, problem in wrong.items():
            if problem:
                self.out(label, "invalid", f"wrong answer in a timed round, against the baseline's: {problem}")

    def judge_all(
        self, inputs: InputSet, other: InputSet, where: str, answers: dict[str, Tree] | None = None, filled: bool = True
    ) -> None:
        """Every arm against the oracle: by the answers given, or called here, then with uninitialized memory filled."""
        if not self.racing:
            return
        truth, rows = oracle(self.job.pair.baseline, self.arms[0], inputs.base, other.base)
        plain = answers or {}
        for arm in self.contenders:
            if arm.label not in plain:
                plain[arm.label] = self.fresh_answer(arm, inputs, other, filled=False)
            problem = self.problem(arm, plain[arm.label], truth, plain["baseline"], rows)
            if problem:
                self.out(arm.label, "invalid", f"wrong answer {where}: {problem}")
        for arm in self.contenders if filled else []:
            out = self.fresh_answer(arm, inputs, other, filled=True)
            problem = self.problem(arm, out, truth, plain["baseline"], rows)
            if problem:
                self.out(arm.label, "invalid", f"wrong answer {where} with uninitialized memory filled: {problem}")

    def blame(self, inputs: InputSet, size: str) -> bool:
        """Were inputs changed? Then who did it is out: a call of each suspect on inputs of its own tells."""
        found = inputs.violation()
        if found is None:
            return False
        self.blamed += 1
        path, suspects = found
        for arm in [arm for arm in self.contenders if arm.label in suspects]:
            own = self.inputs(size)
            self.fresh_answer(arm, own, own, filled=False)
        if not any(label in self.bad for label in suspects):
            self.out("baseline", "invalid", f"the input `{path}` was changed by {' or '.join(suspects)}")
        inputs.restore()
        return True
