"""A search compared with an exhaustive sweep of the same space: another search's best, or searches replayed on it."""

import argparse
import math
import random

import numpy as np
from msgspec.structs import replace

from common.machine.device import default_device
from common.pairs.user_error import UserError
from common.record.files import RecordError
from common.show.console import make_console, print_wrapped
from common.stats import Estimate
from search import show
from search.examine import Bar, Tell
from search.generations import search
from search.history import MEASURED, History, Trial
from search.measure import FINAL_BLOCKS, measured
from search.proposers import SEEDED
from search.space import ADDED, Configuration, Space, brief, name_of

NEAR = 0.98  # of a sweep's best: what a search is to reach


def compare(found: History, sweep: History, device: str | None, bar: Bar) -> int:
    """How near a search's best is to a sweep's, and its share of evaluations. Raises UserError, ChildFailed."""
    for key in ("searched", "problem", "machine", "default"):
        if getattr(found.about, key) != getattr(sweep.about, key):
            raise UserError(f"--compare: two histories of different searches: their {key} differs")
    space, trials = recorded(sweep)
    if not found.measured:
        raise UserError(f"--compare: nothing in {found.path} was measured")
    mine, theirs = show.best_of(found), show.best_of(sweep)
    console = make_console()
    for text in filter(None, (f"search: {brief(mine)}", f"sweep:  {brief(theirs)}", older(sweep, space))):
        print_wrapped(text, console)
    device = device or default_device()
    if mine == theirs:
        said = "the same configuration: 100 %"
    elif sweep.about.searched == "time" and device != "cpu":
        with bar() as tell:
            times = measured(sweep.about.problem, [mine], theirs, device, 0, tell, FINAL_BLOCKS)
        anew = times.judged(Trial(mine, 0, MEASURED))
        if anew.outcome != MEASURED:
            raise UserError(f"--compare: {brief(mine)}: {anew.outcome} {anew.reason}")
        share, control = map(show.interval, (Estimate(anew.score, anew.low, anew.high), times.control))
        said = f"the search's best over the sweep's: {share}; the sweep's over itself (A/A control): {control}"
    elif name_of(mine) not in trials:
        raise UserError("--compare: the sweep did not try the search's best: compare on a GPU, or sweep anew")
    else:
        said = f"the search's best over the sweep's, as the sweep found both: {share_of(mine, trials):.4f}x"
    print_wrapped(said, console)
    print_wrapped(f"evaluations: {len(found.trials)} of {len(trials)} ({len(found.trials) / len(trials):.1%})", console)
    return 0


def recorded(sweep: History) -> tuple[Space, dict[str, Trial]]:
    """(space, name -> trial) of a whole sweep, in the space of its time. Raises RecordError."""
    trials = {trial.name: trial for trial in sweep.trials}
    spaces = [Space.of(sweep.about.problem, sweep.about.machine, without) for without in ({}, ADDED)]
    space = next((space for space in spaces if space.valid.keys() <= trials.keys()), spaces[0])
    missing = space.valid.keys() - trials.keys()
    if missing or not sweep.measured:
        raise RecordError(f"{sweep.path}: no whole sweep: {len(missing)} of {len(space.valid)} were not tried")
    return space, trials


def older(sweep: History, space: Space) -> str:
    """A line if a sweep covers an older, smaller space than a search has now; empty if it covers that."""
    now = Space.of(sweep.about.problem, sweep.about.machine)
    lacking = [f"{axis} {value}" for axis in now.axes for value in now.axes[axis] if value not in space.axes[axis]]
    if not lacking:
        return ""
    return f"the sweep is of an older space: without {', '.join(lacking)}, {len(space.valid)} of {len(now.valid)}"


def share_of(configuration: Configuration, trials: dict[str, Trial]) -> float:
    """A configuration's score over the best, both as a sweep found them."""
    return trials[name_of(configuration)].score / max(trial.score for trial in trials.values())


def replay(sweep: History, args: argparse.Namespace, bar: Bar) -> int:
    """Search what a sweep has recorded, once a seed, each time from another beginning. Raises UserError."""
    if args.proposer not in SEEDED:
        raise UserError("--replay: for the proposers that have a seed")
    space, trials = recorded(sweep)
    console = make_console()
    if line := older(sweep, space):
        print_wrapped(line, console)
    most, shares, needed = args.evaluations or len(space.valid) // 10, [], []
    with bar() as tell:
        for seed in range(args.seeds):
            best = np.maximum.accumulate(shares_by_evaluation(space, trials, args.proposer, seed, most))
            shares.append(best[-1])
            needed.append(np.argmax(best >= NEAR) + 1 if best[-1] >= NEAR else math.inf)
            tell(f"seed {seed}: {shares[-1]:.4f} of the best", (seed + 1) / args.seeds)
    low, tenth, middle = np.quantile(shares, (0, 0.1, 0.5))
    needed.sort()
    reached = np.isfinite(needed).mean()
    usual, longest = (f"{needed[i]:.0f}" if math.isfinite(needed[i]) else "never" for i in (len(needed) // 2, -1))
    default = share_of(sweep.about.default, trials)
    for text in (
        f"{args.proposer}: {most} of {len(trials)} evaluations ({most / len(trials):.1%}), {args.seeds} seeds",
        f"share of the sweep's best: worst {low:.4f}, a tenth below {tenth:.4f}, median {middle:.4f}",
        f"at least {NEAR:.0%}: {reached:.0%} of the seeds; evaluations until then: median {usual}, worst {longest}",
        f"the default is {default:.4f} of it: the searches begin elsewhere, wherever their seed says",
    ):
        print_wrapped(text, console)
    return 0


def shares_by_evaluation(space: Space, trials: dict[str, Trial], proposer: str, seed: int, most: int) -> np.ndarray:
    """(evaluations,): each one's score over the sweep's best, in the order of a search that does not know the default.

    A default that was found by reasoning would be most of what the search seems to find.
    """

    def look_up(configurations: list[Configuration], generation: int, tell: Tell) -> list[Trial]:
        return [replace(trials[name_of(each)], generation=generation) for each in configurations]

    kept, (first,) = History(None), random.Random(f"begin {seed}").sample(list(space.valid.values()), 1)
    search(kept, space, SEEDED[proposer](space, seed), look_up, first, most, math.inf, lambda *_: None)
    return np.array([trial.score for trial in kept.trials]) / max(trial.score for trial in trials.values())
