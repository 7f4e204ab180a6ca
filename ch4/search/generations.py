"""The loop: propose, compile, verify, time, record; until the evaluations or the seconds are used up."""

import random
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from common import stats
from common.isolation import interrupt
from common.record.decision import decide
from common.record.result import CONTROL
from common.show.words import text
from common.xray.occupancy import Machine
from search.examine import Tell, examined
from search.history import MEASURED, History, Trial
from search.measure import DEFAULT, FINAL_BLOCKS, TORCH, Measured, measured
from search.proposers import Proposer
from search.space import Configuration, Problem, Space, name_of

GENERATION = 12
FINALISTS = 3  # measured again, on new inputs: the best of many measurements is partly the luckiest
Scored = tuple[list[Trial], dict[str, float]]  # a trial each; the A/A control's ratio, empty where there is no noise


class Bench(Protocol):
    """What gives a configuration its score: a GPU, X-ray's proxy, or the record of a sweep."""

    def score(self, configurations: list[Configuration], generation: int, tell: Tell) -> Scored: ...


@dataclass(frozen=True)
class Proxy:
    """X-ray, without a GPU."""

    problem: Problem
    machine: Machine

    def score(self, configurations: list[Configuration], generation: int, tell: Tell) -> Scored:
        return examined(self.problem, configurations, self.machine, generation, tell), {}


@dataclass(frozen=True)
class Gpu:
    """Compiled on all cores, then verified and timed on a GPU."""

    problem: Problem
    machine: Machine
    device: str
    default: Configuration
    seed: int

    def score(self, configurations: list[Configuration], generation: int, tell: Tell) -> Scored:
        compiled = examined(self.problem, configurations, self.machine, generation, tell)
        able = [trial.configuration for trial in compiled if trial.outcome == MEASURED]
        seed = random.Random(f"{self.seed} {generation}").randrange(2**31)
        times = measured(self.problem, able, self.default, self.device, seed, tell)
        control = asdict(times.ratio(CONTROL)) if times.seconds else {}
        return [_timed(trial, times) for trial in compiled], control

    def final(self, history: History, tell: Tell) -> dict[str, Any]:
        """Measure the finalists again, with the default, its A/A control and torch."""
        finalists = {trial.name: trial.configuration for trial in history.measured[:FINALISTS]}
        anew, seed = [*finalists.values()], self.seed + 1
        times = measured(self.problem, anew, self.default, self.device, seed, tell, FINAL_BLOCKS)
        timed = times.seconds
        ratios = {name: times.ratio(name) for name in finalists if name in timed}
        if not ratios:
            return {}
        best = max(ratios, key=lambda name: ratios[name].ratio)
        control = times.ratio(CONTROL)
        outcome = decide(ratios[best], len(timed[best]), abs(control.ratio - 1), [], [])
        over_torch = {"over_torch": asdict(times.ratio(best, TORCH))} if TORCH in timed else {}
        names = {best: best, "default": DEFAULT, "torch": TORCH}
        return {
            "configuration": finalists[best], "over_default": asdict(ratios[best]), "repeat": asdict(control),
            **over_torch, "verdict": outcome.verdict.value, "reason": text(outcome.reason),
            "seconds": {name: stats.overall_median(timed[label]) for name, label in names.items() if label in timed},
        }  # fmt: skip


def _timed(trial: Trial, times: Measured) -> Trial:
    """A trial that was compiled, with its time, or the reason why it has none."""
    if trial.name in times.seconds:
        ratio, seconds = times.ratio(trial.name), stats.overall_median(times.seconds[trial.name])
        return replace(trial, score=ratio.ratio, low=ratio.low, high=ratio.high, seconds=seconds)
    if trial.name in times.bad:
        outcome, reason = times.bad[trial.name]
        return replace(trial, outcome=outcome, reason=reason, score=0.0, low=0.0, high=0.0)
    return trial


@dataclass(frozen=True)
class Replay:
    """A recorded sweep in place of a GPU: it has the score of every configuration."""

    sweep: dict[str, Trial]

    def score(self, configurations: list[Configuration], generation: int, tell: Tell) -> Scored:
        return [replace(self.sweep[name_of(each)], generation=generation) for each in configurations], {}


def search(
    history: History, space: Space, proposer: Proposer, bench: Bench, default: Configuration, most: int,
    budget_s: float, tell: Tell, size: int = GENERATION,
) -> None:  # fmt: skip
    """Continue a history until it has `most` trials; after `budget_s` no new generation begins.

    The default is tried first. Raises ProposerError, KeyboardInterrupt.
    """
    begin = time.monotonic()
    while len(history.trials) < most and time.monotonic() - begin < budget_s:
        count = min(size, most - len(history.trials))
        first = [] if name_of(default) in history.names else [default]
        proposed = proposer.propose(history, count - len(first)) if count > len(first) else []
        batch = first + [each for each in proposed if each not in first]
        if not batch:
            return
        with interrupt.interruptible():  # a generation that Ctrl-C ends leaves no line
            trials, control = bench.score(batch, history.generations, _telling(history, len(batch), most, tell))
        history.add(trials, control)


def _telling(history: History, batch: int, most: int, tell: Tell) -> Tell:
    """Progress of a generation, as a part of the whole search."""
    start = f"generation {history.generations}"
    best = f", best {history.measured[0].score:.3g}" if history.measured else ""
    before = len(history.trials)
    return lambda what, fraction: tell(f"{start}: {what}{best}", (before + fraction * batch) / most)
