"""The loop: propose, compile, verify, time, write down; until the evaluations or the seconds are used up."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from common.isolation import interrupt
from common.record import stats
from common.xray.occupancy import Machine
from search.examine import examined, trial_of
from search.history import MEASURED, History, Trial
from search.measure import DEFAULT, REPEAT, TORCH, measured
from search.proposers import Proposer
from search.space import Configuration, Problem, Space, name_of

GENERATION = 12
FINALISTS = 3  # measured again, on new inputs: the best of many measurements is partly the luckiest
Tell = Callable[[str, float], None]


class Bench(Protocol):
    """What gives a configuration its score: a GPU, X-ray's proxy, or the record of a sweep."""

    def score(
        self, configurations: list[Configuration], generation: int, tell: Tell
    ) -> tuple[list[Trial], dict[str, float]]:
        """A trial each, and how far the default was from itself; empty where there is no noise."""


@dataclass(frozen=True)
class Proxy:
    """X-ray, without a GPU."""

    problem: Problem
    machine: Machine

    def score(
        self, configurations: list[Configuration], generation: int, tell: Tell
    ) -> tuple[list[Trial], dict[str, float]]:
        found = examined(self.problem, configurations, self.machine, tell)
        return [trial_of(each, generation, self.machine, found[name_of(each)]) for each in configurations], {}


@dataclass(frozen=True)
class Gpu:
    """Compiled on all cores, then verified and timed on a GPU."""

    problem: Problem
    machine: Machine
    device: str
    default: Configuration
    seed: int

    def score(
        self, configurations: list[Configuration], generation: int, tell: Tell
    ) -> tuple[list[Trial], dict[str, float]]:
        compiled, _ = Proxy(self.problem, self.machine).score(configurations, generation, tell)
        able = [trial.configuration for trial in compiled if trial.outcome == MEASURED]
        if not able:
            return compiled, {}
        seed = random.Random(f"{self.seed} {generation}").randrange(2**31)
        times = measured(self.problem, able, self.default, self.device, seed, tell)
        trials = []
        for trial in compiled:
            if trial.name in times.seconds:
                ratio = times.ratio(trial.name)
                seconds = stats.overall_median(times.seconds[trial.name])
                trial = replace(trial, score=ratio.ratio, low=ratio.low, high=ratio.high, seconds=seconds)
            elif trial.name in times.bad:
                outcome, reason = times.bad[trial.name]
                trial = replace(trial, outcome=outcome, reason=reason, score=0.0, low=0.0, high=0.0)
            trials.append(trial)
        return trials, as_dict(times.ratio(REPEAT))

    def final(self, history: History, tell: Tell) -> dict[str, Any]:
        """The finalists against the default, the default against itself, and torch, all anew."""
        finalists = [trial.configuration for trial in history.measured[:FINALISTS]]
        times = measured(self.problem, finalists, self.default, self.device, self.seed + 1, tell, final=True)
        kept = [each for each in finalists if name_of(each) in times.seconds]
        if not kept:
            return {}
        best = max(kept, key=lambda each: times.ratio(name_of(each)).ratio)
        repeat = times.ratio(REPEAT)
        verdict, reason = stats.verdict(times.ratio(name_of(best)), abs(repeat.ratio - 1))
        return {
            "configuration": best, "over_default": as_dict(times.ratio(name_of(best))), "repeat": as_dict(repeat),
            "over_torch": as_dict(times.ratio(name_of(best), TORCH)), "verdict": verdict, "reason": reason,
            "seconds": {name: stats.overall_median(times.seconds[name]) for name in (name_of(best), DEFAULT, TORCH)},
        }  # fmt: skip


@dataclass(frozen=True)
class Replay:
    """The record of a sweep in place of a GPU: what each configuration was found to be."""

    sweep: dict[str, Trial]

    def score(
        self, configurations: list[Configuration], generation: int, tell: Tell
    ) -> tuple[list[Trial], dict[str, float]]:
        return [replace(self.sweep[name_of(each)], generation=generation) for each in configurations], {}


def as_dict(ratio: stats.Estimate) -> dict[str, float]:
    return {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high}


def search(
    history: History, space: Space, proposer: Proposer, bench: Bench, default: Configuration, most: int,
    budget_s: float, tell: Tell, size: int = GENERATION,
) -> None:  # fmt: skip
    """Go on with a history until it has `most` trials, or after `budget_s` begin no new generation.

    The default is the first to be tried. Raises ProposerError, KeyboardInterrupt.
    """
    begin = time.monotonic()
    while len(history.trials) < most and time.monotonic() - begin < budget_s:
        count = min(size, most - len(history.trials))
        first = [] if name_of(default) in history.names else [default]
        proposed = proposer.propose(history, count - len(first)) if count > len(first) else []
        batch = first + [each for each in proposed if each not in first]
        if not batch:
            return
        with interrupt.waiting():  # a generation that Ctrl-C ends leaves no line
            trials, repeat = bench.score(batch, history.generations, _telling(history, len(batch), most, tell))
        history.add(trials, repeat)


def _telling(history: History, batch: int, most: int, tell: Tell) -> Tell:
    """What a generation says of itself, as a part of the whole search."""
    start = f"generation {history.generations}"
    best = f", best {history.measured[0].score:.3g}" if history.measured else ""
    before = len(history.trials)
    return lambda what, fraction: tell(f"{start}: {what}{best}", (before + fraction * batch) / most)
