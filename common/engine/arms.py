"""The arms of a pair inside its process: its versions, its library calls, the baseline again; and the oracle."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import torch

from common.checks.arrays import Tree, clone, own_views, tensors, to_float64
from common.pairs.contract import Version
from common.record.result import CONTROL

LIBRARY_KINDS = ("library", "yardstick")  # functions of a version that are timed along, and no versions
ORACLE_ROWS = 64  # of answers whose oracle does not fit in memory


class Invalid(Exception):
    """An arm broke the rules: (label, how)."""


@dataclass
class LiveArm:
    """A loaded version, or a library call on a version's inputs. `state`: what `setup` returned for this block."""

    label: str
    module: ModuleType
    run: Callable[..., Any]
    setup: Callable[..., dict[str, Any]] | None = None
    has_kernel: bool = False  # of its own
    differs: bool = False  # a library whose answer may differ, or a yardstick
    shares: dict[str, bool] = field(default_factory=dict)  # by shapes: does it take the baseline's own buffers?
    state: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    returns: str = ""  # the input whose memory its answer shares
    carries: bool = False  # does its answer require gradients?
    layout: dict[str, tuple[str, str]] = field(default_factory=dict)  # its answer's laziness and order, by path
    compile_s: float = 0.0  # first set-up and call
    pilot_s: float = 0.0  # the pilot's seconds a call
    host_s: float = 0.0  # until a call returns
    patience: float = 1.0  # times host_s: what a sample hides of it; doubled where the device waited nevertheless
    waited: int = 0  # samples in which it did
    calls: int = 1  # per sample
    floor_s: float = 0.0  # what the clock reads for as many calls that do nothing
    tails: list[float] = field(default_factory=list)  # of every sample: until the device was idle
    grads: dict[str, Any] = field(default_factory=dict)  # what its last judged call left in its inputs' .grad
    allocated_bytes: int | None = None  # by one warm call
    peak_bytes: int | None = None  # in use at once during one, beyond what was before
    traced: bool = True  # was the device's work in it seen?
    cores: list[float] = field(default_factory=list)  # of every sample: how many its threads kept busy
    seconds: list[list[float]] = field(default_factory=list)

    @property
    def is_library(self) -> bool:
        return self.label.split("/")[0] in LIBRARY_KINDS

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
            self.state = self.setup(**private, **own_views(weights(weights_from)))

    def bind(self, inputs: dict[str, Any]) -> partial:
        """A call that is ready to be timed, on views of its own."""
        return partial(self.run, **own_views(inputs), **self.state)


def make_arms(modules: dict[str, ModuleType], again: ModuleType) -> list[LiveArm]:
    """The versions as loaded, by label; their library calls and yardsticks; and the baseline once more, loaded anew."""
    libraries: dict[str, LiveArm] = {}
    for module in modules.values():
        for name, function in vars(module).items():
            kind = name.split("_")[0]
            if kind in LIBRARY_KINDS and name != "yardstick":
                differs = kind == "yardstick" or hasattr(module, "LIBRARY_DIFFERS")
                libraries.setdefault(name, LiveArm(name.replace("_", "/", 1), module, function, differs=differs))
    return [*map(_version, modules, modules.values()), *libraries.values(), _version(CONTROL, again)]


def _version(label: str, module: ModuleType) -> LiveArm:
    return LiveArm(label, module, module.run, getattr(module, "setup", None))


def count_costs(arms: list[LiveArm], by_arm: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Ask each arm's file what the work on its inputs costs; returns label -> problem where it is not the baseline's.

    All arms do the same work, so their amounts are equal; only the name of the FLOPs is free under PRECISION.
    """
    wrong = {}
    for arm in arms:
        count = getattr(arm.module, "cost", getattr(arms[0].module, "cost", None))
        cost = count(**by_arm[arm.label]) if count else {}
        arm.cost = {key: float(amount) for key, amount in cost.items()}
        if not all(0 <= amount < math.inf for amount in arm.cost.values()):
            raise ValueError(f"cost of {arm.label} is {arm.cost}: amounts are finite and not negative")
        mine, theirs = (_nameless(each.cost) if arm.precision else each.cost for each in (arm, arms[0]))
        if mine != theirs:
            wrong[arm.label] = f"its cost is {arm.cost}, the baseline's {arms[0].cost}: it is the same work"
    return wrong


def _nameless(cost: dict[str, float]) -> dict[str, float]:
    """The cost with its FLOPs of whatever precision as one amount."""
    moved = {key: amount for key, amount in cost.items() if not key.endswith("_flops")}
    return {**moved, "flops": sum(amount for key, amount in cost.items() if key.endswith("_flops"))}


def weights(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name.startswith("w_")}


def oracle(version: Version, arm: LiveArm, inputs: dict[str, Any], other: dict[str, Any]) -> tuple[Tree, int | None]:
    """(the answer in float64, how many leading rows it covers or None for all).

    `other` feeds the baseline's `setup` where the baseline is the oracle.
    """
    exact = to_float64(inputs)
    reference = getattr(arm.module, "reference", None)
    if reference is None:
        stand_in = LiveArm("oracle", arm.module, arm.run, arm.setup)
        stand_in.prepare(to_float64(other), exact)
        return clone(stand_in.bind(exact)()), None
    rows = ORACLE_ROWS if "rows" in version.functions["reference"] else None
    truth = reference(**exact, rows=rows) if rows else reference(**exact)
    for _, answer in tensors(truth):
        if answer.is_floating_point() and answer.dtype != torch.float64:
            raise Invalid(arm.label, f"its reference answers in {answer.dtype}: an oracle computes in torch.float64")
    return truth, rows
