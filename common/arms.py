"""The arms of a pair inside its process: its halves, its library calls, the baseline again; and what they are given."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch

from common import guard
from common.arrays import (
    Tree,
    clone,
    copy_into,
    difference,
    overwrite_slice,
    own_containers,
    same_placement,
    tensors,
    to_float64,
)
from common.device import cupy_on
from common.pair import Half, Pair, load

ORACLE_ROWS = 64  # of answers whose oracle does not fit in memory


class Invalid(Exception):
    """An arm broke the rules: (label, how)."""


@dataclass
class LiveArm:
    """A loaded half, or a library function with its half's inputs. `state` is what `setup` returned for this block."""

    label: str
    module: ModuleType
    run: Callable[..., Any]
    setup: Callable[..., dict[str, Any]] | None = None
    differs: bool = False  # a library whose answer may differ
    shares: dict[str, bool] = field(default_factory=dict)  # by shapes: does it take the baseline's own buffers?
    state: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    returns: str = ""  # the input whose memory its answer shares
    compile_s: float = 0.0  # first set-up and call
    pilot_s: float = 0.0  # the pilot's seconds a call
    host_s: float = 0.0  # until a call returns
    calls: int = 1  # per sample
    tails: list[float] = field(default_factory=list)  # of every sample: until the device was idle
    seconds: list[list[float]] = field(default_factory=list)

    @property
    def precision(self) -> str:
        return getattr(self.module, "PRECISION", "")

    @property
    def tolerance(self) -> tuple[float, float] | None:
        return getattr(self.module, "TOLERANCE", None)

    def prepare(self, inputs: dict[str, Any], weights_from: dict[str, Any]) -> None:
        """Run `setup` on private copies of other inputs than `run` will see, but on the weights that it will."""
        if self.setup is not None:
            private = clone({name: value for name, value in inputs.items() if not name.startswith("w_")})
            self.state = self.setup(**private, **own_containers(weights(weights_from)))

    def bind(self, inputs: dict[str, Any]) -> partial:
        """A call that is ready to be timed, with containers of its own."""
        return partial(self.run, **own_containers(inputs), **self.state)


def load_arms(pair: Pair, labels: list[str]) -> list[LiveArm]:
    """The baseline, the chosen variants, the libraries, and the baseline again from a copy of its own."""
    modules = {half.label: load(half.path) for half in pair.halves if half.label in labels}
    arms = [_half(label, module) for label, module in modules.items()]
    seen: dict[str, None] = {}
    for module in modules.values():
        for name in vars(module):
            if (name == "library" or name.startswith("library_")) and name not in seen:
                seen[name] = None
                differs = hasattr(module, "LIBRARY_DIFFERS")
                arms.append(LiveArm(name.replace("_", "/", 1), module, getattr(module, name), differs=differs))
    return [*arms, _half("repeat", load(pair.baseline.path))]


def _half(label: str, module: ModuleType) -> LiveArm:
    return LiveArm(label, module, module.run, getattr(module, "setup", None))


def seed_all(seed: int, device: str) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (whichever generator a pair draws from)
    torch.manual_seed(seed)
    if cupy := cupy_on(device):
        cupy.random.seed(seed % 2**32)


class InputSet:
    """One draw of the inputs, in each arm's placement, with a private copy to compare with afterwards.

    `like`: an earlier set whose weights (`w_*`) this one shares, as the calls of a block do.
    """

    def __init__(
        self, arms: list[LiveArm], arguments: dict[str, Any], device: str, seed: int, like: "InputSet | None" = None
    ) -> None:
        seed_all(seed, device)
        self.base: dict[str, Any] = arms[0].module.inputs(**arguments, device=device)
        self.by_arm = {arm.label: self._placed(arm, arguments, device, seed) for arm in arms}
        self.trees = list({id(tree): tree for tree in self.by_arm.values()}.values())
        self.pristine = clone(inputs_proper(self.base))
        self.pristine_weights: dict[str, Any] = clone(weights(self.base)) if like is None else like.pristine_weights
        if like is not None:
            for label, tree in self.by_arm.items():
                tree.update(weights(like.by_arm[label]))

    def _placed(self, arm: LiveArm, arguments: dict[str, Any], device: str, seed: int) -> dict[str, Any]:
        """The arm's inputs with the baseline's values; the baseline's own buffers where the arm places them alike."""
        key = repr(arguments)
        if arm.shares.get(key):
            return self.base
        seed_all(seed, device)
        own: dict[str, Any] = arm.module.inputs(**arguments, device=device)
        problem = difference(self.base, own)
        if problem:
            raise Invalid(arm.label, f"its inputs are others than the baseline's: {problem}")
        arm.shares[key] = same_placement(self.base, own)
        if arm.shares[key]:
            return self.base
        copy_into(own, self.base)
        return own

    @property
    def mixes(self) -> bool:
        """May a part of every input be overwritten? Not of integers, nor of single values: those need a new draw."""
        return all(t.is_floating_point() and t.numel() > 1 for _, t in tensors(inputs_proper(self.base)))

    def overwrite(self, source: "InputSet", rng: random.Random) -> None:
        """New values in a random part of every input but the weights, the same for every arm."""
        overwrite_slice([*map(inputs_proper, self.trees), self.pristine], inputs_proper(source.base), rng)

    def violation(self) -> tuple[str, list[str]] | None:
        """(the input that was changed, the labels of the arms that had it in their hands); None if all is as it was."""
        for tree in self.trees:
            path = guard.changed_input(unwritable(tree), {**self.pristine, **self.pristine_weights})
            if path:
                return path, [label for label, theirs in self.by_arm.items() if theirs is tree]
        return None

    def restore(self) -> None:
        for tree in self.trees:
            copy_into(unwritable(tree), {**self.pristine, **self.pristine_weights})


def count_costs(arms: list[LiveArm], inputs: InputSet) -> None:
    """What each arm's file says that the work costs; else what the baseline's, the first, says."""
    for arm in arms:
        count = getattr(arm.module, "cost", getattr(arms[0].module, "cost", None))
        cost = count(**inputs.by_arm[arm.label]) if count else {}
        arm.cost = {key: float(amount) for key, amount in cost.items()}
        if not all(0 <= amount < math.inf for amount in arm.cost.values()):
            raise ValueError(f"cost of {arm.label} is {arm.cost}: amounts are finite and not negative")


def weights(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name.startswith("w_")}


def unwritable(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if not name.startswith("out")}


def inputs_proper(tree: dict[str, Any]) -> dict[str, Any]:
    """Neither weights nor outputs: what differs from call to call and may not be written."""
    return {name: value for name, value in tree.items() if not name.startswith(("w_", "out"))}


def oracle(pair_half: Half, arm: LiveArm, inputs: dict[str, Any], other: dict[str, Any]) -> tuple[Tree, int | None]:
    """(the answer in float64, how many leading rows it covers or None for all).

    `other` feeds the baseline's `setup` where the baseline is the oracle.
    """
    exact = to_float64(inputs)
    reference = getattr(arm.module, "reference", None)
    if reference is None:
        stand_in = LiveArm("oracle", arm.module, arm.run, arm.setup)
        stand_in.prepare(to_float64(other), exact)
        return clone(stand_in.bind(exact)()), None
    if "rows" in pair_half.functions["reference"]:
        return reference(**exact, rows=ORACLE_ROWS), ORACLE_ROWS
    return reference(**exact), None

