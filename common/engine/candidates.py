"""The candidates of a pair inside its process: its versions, its library calls, the baseline again; and the oracle."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch

from common.checks.arrays import Tree, clone, own_views, tensors, to_float64
from common.checks.tolerance import Custom
from common.pairs.contract import Version
from common.record.result import CONTROL

LIBRARY_KINDS = ("library", "yardstick")  # functions of a version that are timed along, and no versions
ORACLE_ROWS = 64  # of answers whose oracle does not fit in memory


class Disqualified(Exception):
    """One that broke the rules: (label, how)."""


@dataclass(frozen=True)
class Candidate:
    """What is to be timed: a loaded version, or a library call on a version's inputs."""

    label: str
    module: ModuleType
    run: Callable[..., Any]
    setup: Callable[..., dict[str, Any]] | None = None
    has_kernel: bool = False  # of its own
    differs: bool = False  # a library whose answer may differ, or a yardstick

    @property
    def is_library(self) -> bool:
        return self.label.split("/")[0] in LIBRARY_KINDS

    @property
    def precision(self) -> str:
        return getattr(self.module, "PRECISION", "")

    @property
    def custom(self) -> Custom:
        """The tolerance that its file declares."""
        return getattr(self.module, "TOLERANCE", None)

    def prepared(self, inputs: dict[str, Any], weights_from: dict[str, Any]) -> dict[str, Any]:
        """What `setup` returns for private copies of other inputs than `run` will see, but the weights that it will."""
        if self.setup is None:
            return {}
        private = clone({name: value for name, value in inputs.items() if not name.startswith("w_")})
        return self.setup(**private, **own_views(weights(weights_from)))

    def bind(self, inputs: dict[str, Any], state: dict[str, Any]) -> partial:
        """A call that is ready to be timed, on views of its own."""
        return partial(self.run, **own_views(inputs), **state)


def make_candidates(modules: dict[str, ModuleType], again: ModuleType, kernels: Iterable[str]) -> list[Candidate]:
    """The versions as loaded, by label; their library calls and yardsticks; and the baseline once more, loaded anew.

    `kernels`: the labels of those that have one of their own.
    """
    versions = [_version(label, module, label in kernels) for label, module in modules.items()]
    libraries: dict[str, Candidate] = {}
    for module in modules.values():
        for name, function in vars(module).items():
            kind = name.split("_")[0]
            if kind in LIBRARY_KINDS and name != "yardstick":
                differs = kind == "yardstick" or hasattr(module, "LIBRARY_DIFFERS")
                libraries.setdefault(name, Candidate(name.replace("_", "/", 1), module, function, differs=differs))
    return [*versions, *libraries.values(), _version(CONTROL, again, "baseline" in kernels)]


def _version(label: str, module: ModuleType, has_kernel: bool) -> Candidate:
    return Candidate(label, module, module.run, getattr(module, "setup", None), has_kernel)


Costs = dict[str, dict[str, float]]  # label -> what its work costs


def count_costs(candidates: list[Candidate], by_label: dict[str, dict[str, Any]]) -> Costs:
    """Ask each one's file what the work on its inputs costs. Raises ValueError for what is no amount."""
    costs = {}
    for each in candidates:
        count = getattr(each.module, "cost", getattr(candidates[0].module, "cost", None))
        cost = count(**by_label[each.label]) if count else {}
        costs[each.label] = {key: float(amount) for key, amount in cost.items()}
        if not all(0 <= amount < math.inf for amount in costs[each.label].values()):
            raise ValueError(f"cost of {each.label} is {costs[each.label]}: amounts are finite and not negative")
    return costs


def other_work(candidates: list[Candidate], costs: Costs) -> dict[str, str]:
    """Whose amounts are not the baseline's: only the name of the FLOPs is free under PRECISION."""
    wrong = {}
    for each in candidates:
        base = costs[candidates[0].label]
        mine, theirs = (_nameless(cost) if each.precision else cost for cost in (costs[each.label], base))
        if mine != theirs:
            wrong[each.label] = f"its cost is {costs[each.label]}, the baseline's {base}: it is the same work"
    return wrong


def _nameless(cost: dict[str, float]) -> dict[str, float]:
    """The cost with its FLOPs of whatever precision as one amount."""
    moved = {key: amount for key, amount in cost.items() if not key.endswith("_flops")}
    return {**moved, "flops": sum(amount for key, amount in cost.items() if key.endswith("_flops"))}


def weights(tree: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name.startswith("w_")}


def oracle_rows(baseline: Version) -> int | None:
    """How many leading rows the pair's oracle covers; None for all."""
    return ORACLE_ROWS if "rows" in baseline.functions.get("reference", ()) else None


def oracle(baseline: Candidate, rows: int | None, inputs: dict[str, Any], other: dict[str, Any]) -> Tree:
    """The answer in float64, of leading `rows`. `other` feeds the baseline's `setup` where that is the oracle.

    Raises Disqualified where the reference answers in less.
    """
    exact = to_float64(inputs)
    reference = getattr(baseline.module, "reference", None)
    if reference is None:
        return clone(baseline.bind(exact, baseline.prepared(to_float64(other), exact))())
    truth = reference(**exact, rows=rows) if rows else reference(**exact)
    for _, answer in tensors(truth):
        if answer.is_floating_point() and answer.dtype != torch.float64:
            raise Disqualified("baseline", f"its reference answers in {answer.dtype}, an oracle in torch.float64")
    return truth
