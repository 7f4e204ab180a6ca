"""What to try next: propose(history, count) -> configurations that are valid and were not tried.

The same seed and the same history give the same proposals, so that an interrupted search continues as it would have.
"""

import itertools
import random
from collections.abc import Callable
from typing import Protocol

import numpy as np

from search.history import History
from search.space import Configuration, Space, name_of

PARENTS = 4  # the best so far, of which the next generation is made
CROSSED = 0.3  # of the children take each axis from one of two parents
NEWCOMERS = 0.1  # of all that are drawn owe nothing to parents: the way out of a local best
DRAWN = 16  # children for each that is measured
BY_PROMISE = 0.75  # of a generation are those that promise most, the others are drawn from the rest
MOST_DRAWS = 200  # for a child that was not tried yet
PAIR_WEIGHT = 0.7  # of a pair of values against a value alone: the fit explains by single values what it can
RIDGE = 1.0  # how reluctantly the fit departs from the mean


class ProposerError(Exception):
    """There will be no more proposals; str() says why, in one line."""


class Proposer(Protocol):
    def propose(self, history: History, count: int) -> list[Configuration]:
        """At most `count`; none where nothing is left. Raises ProposerError."""


class Shuffled:
    """The whole space in random order: complete it is an exhaustive sweep, and stopped early a random search."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._order = space, random.Random(seed).sample(list(space.valid), len(space.valid))

    def propose(self, history: History, count: int) -> list[Configuration]:
        tried = history.names
        return [self._space.valid[name] for name in self._order if name not in tried][:count]


class Evolutionary:
    """Children of the best so far, changed by a step or crossed; of these, those with the highest expected score."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed
        self._movable = [axis for axis, values in space.axes.items() if len(values) > 1]

    def propose(self, history: History, count: int) -> list[Configuration]:
        rng = random.Random(f"{self._seed} {history.generations}")
        parents = [trial.configuration for trial in history.measured[:PARENTS]]
        taken, children = history.names, list[Configuration]()
        while len(children) < count * (DRAWN if parents else 1) and len(taken) < len(self._space.valid):
            children.append(self._child(rng, parents, taken))
            taken.add(name_of(children[-1]))
        if not parents:
            return children
        promise = self._promise(history, children)
        children = [children[i] for i in np.argsort(-promise, kind="stable")]
        best = round(BY_PROMISE * count)
        rest = children[best:]
        return children[:best] + rng.sample(rest, min(count - best, len(rest)))

    def _child(self, rng: random.Random, parents: list[Configuration], taken: set[str]) -> Configuration:
        for draw in range(MOST_DRAWS if parents and rng.random() >= NEWCOMERS else 0):
            parent = parents[min(rng.randrange(len(parents)), rng.randrange(len(parents)))]  # rather a better one
            child = dict(parent)
            if rng.random() < CROSSED:
                other = rng.choice(parents)
                child = {axis: rng.choice((parent, other))[axis] for axis in parent}
            for _ in range(rng.choice((0, 1, 1, 2)) + draw // 50):  # further away where the near ones are taken
                self._step(rng, child)
            name = name_of(child)
            if name in self._space.valid and name not in taken:
                return child
        return self._space.valid[rng.choice([name for name in self._space.valid if name not in taken])]

    def _step(self, rng: random.Random, child: Configuration) -> None:
        """To a neighbour on one axis; to any other variant."""
        axis = rng.choice(self._movable)
        values = self._space.axes[axis]
        place = values.index(child[axis])
        near = range(len(values)) if axis == "VARIANT" else (place - 1, place + 1)
        child[axis] = values[rng.choice([i for i in near if i != place and 0 <= i < len(values)])]

    def _promise(self, history: History, children: list[Configuration]) -> np.ndarray:
        """log(score) of children as a ridge regression on values, and pairs of values, of those measured expects it."""
        measured = history.measured
        scores = np.log([max(trial.score, 1e-9) for trial in measured])
        x = _features(children + [trial.configuration for trial in measured])
        x, known = np.split(x, [len(children)])
        weights = np.linalg.solve(known @ known.T + RIDGE * np.eye(len(scores)), scores - scores.mean())
        return x @ (known.T @ weights)


SEEDED: dict[str, Callable[[Space, int], Proposer]] = {
    "evolutionary": Evolutionary, "random": Shuffled, "exhaustive": Shuffled,
}  # fmt: skip


def _features(configurations: list[Configuration]) -> np.ndarray:
    """(configurations, features): the weight of each value, and of each pair of values, that a configuration has."""
    rows = list[dict[str, float]]()
    for each in configurations:
        values = [f"{axis} {value}" for axis, value in each.items()]
        pairs = {f"{one}, {other}": PAIR_WEIGHT for one, other in itertools.combinations(sorted(values), 2)}
        rows.append({**dict.fromkeys(values, 1.0), **pairs})
    names = sorted(set().union(*rows))
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])
