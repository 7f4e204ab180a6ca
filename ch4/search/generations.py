"""The loop: propose, compile, verify, time, record; until the evaluations or the seconds are used up."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from common.isolation import interrupt
from common.show.words import text
from common.stats import Estimate
from common.xray.occupancy import Machine
from search.examine import Tell, examined
from search.history import MEASURED, Final, History, Line, Repeat
from search.measure import DEFAULT, FINAL_BLOCKS, TORCH, measured
from search.proposers import Proposer
from search.space import Configuration, Problem, Space, name_of

GENERATION = 12
FINALISTS = 3  # measured again, on new inputs: the best of many measurements is partly the luckiest
# (configurations, generation, tell) -> a trial each, and the A/A control where there is noise
Score = Callable[[list[Configuration], int, Tell], Sequence[Line]]


@dataclass(frozen=True)
class Bench:
    """Compiles on all cores. Then a GPU verifies and times; without a `device` X-ray's proxy is the score."""

    problem: Problem
    machine: Machine
    default: Configuration
    device: str = ""
    seed: int = 0

    def score(self, configurations: list[Configuration], generation: int, tell: Tell) -> Sequence[Line]:
        trials = examined(self.problem, configurations, self.machine, generation, tell)
        if not self.device:
            return trials
        able = [trial.configuration for trial in trials if trial.outcome == MEASURED]
        seed = random.Random(f"{self.seed} {generation}").randrange(2**31)
        times = measured(self.problem, able, self.default, self.device, seed, tell)
        return [*map(times.judged, trials), *([Repeat(**asdict(times.control))] if times.arms else [])]

    def final(self, history: History, tell: Tell) -> list[Final]:
        """Measure the finalists again, with the default, its A/A control and torch; none if all fail now."""
        finalists = {trial.name: trial.configuration for trial in history.measured[:FINALISTS]}
        anew, seed = [*finalists.values()], self.seed + 1
        times = measured(self.problem, anew, self.default, self.device, seed, tell, FINAL_BLOCKS)
        timed = [row for row in times.rows.values() if row.ratio and row.interval]
        if not timed:
            return []
        best = max(timed, key=lambda row: row.ratio or 0.0)
        over_default, torch = Estimate(best.ratio or 0.0, *(best.interval or ())), best.vs_library.get(TORCH)
        named = {best.variant: best.variant, "default": DEFAULT, "torch": TORCH}
        seconds = {name: times.arms[label].median_s for name, label in named.items() if label in times.arms}
        over_torch = Estimate(torch["ratio"], *torch["interval"]) if torch else None
        configuration, verdict, reason = finalists[best.variant], best.verdict.value, text(best.reason)
        return [Final(configuration, over_default, times.control, verdict, reason, seconds, over_torch)]


def search(
    history: History, space: Space, proposer: Proposer, score: Score, default: Configuration, most: int,
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
            lines = score(batch, history.generations, _telling(history, len(batch), most, tell))
        history.add(*lines)


def _telling(history: History, batch: int, most: int, tell: Tell) -> Tell:
    """Progress of a generation, as a part of the whole search."""
    start = f"generation {history.generations}"
    best = f", best {history.measured[0].score:.3g}" if history.measured else ""
    before = len(history.trials)
    return lambda what, fraction: tell(f"{start}: {what}{best}", (before + fraction * batch) / most)
