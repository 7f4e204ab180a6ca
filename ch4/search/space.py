"""What there is to try: the axes of a configuration, and which of their products a GPU cannot hold, by arithmetic."""

import itertools
import json
from dataclasses import dataclass
from typing import Any

from common.xray.occupancy import REGISTERS_PER_SM, SYSTEM_SHARED_BYTES, WARP, Machine

Configuration = dict[str, Any]  # with the keys of gemm.DEFAULT
SIDES = (16, 32, 64, 128, 256)
MOST_REGISTERS = 255  # of a thread, if a block's threads leave it as many
ADDED = {"WARPS": [16]}  # values of axes that sweeps from before 2026-11-29 do not have
ITEM_BYTES = 2  # float16 and bfloat16
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Problem:
    """c = activation(a @ b) with a: [m, k], b: [k, n], all of `dtype`: float16 or bfloat16."""

    m: int
    n: int
    k: int
    dtype: str
    activation: str

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    def __str__(self) -> str:
        then = "" if self.activation == "none" else f" with {self.activation}"
        return f"{self.m} x {self.n} x {self.k} {self.dtype}{then}"


@dataclass(frozen=True)
class Resources:
    """Registers of a thread, bytes of shared memory of a block."""

    registers: int
    shared_bytes: int


def name_of(configuration: Configuration) -> str:
    """One line for one configuration, always the same."""
    return _ENCODER.encode(configuration)


def brief(configuration: Configuration) -> str:
    c = configuration
    tile = f"{c['BLOCK_M']}x{c['BLOCK_N']}x{c['BLOCK_K']}"
    return f"{tile} group {c['GROUP_M']} stages {c['STAGES']} warps {c['WARPS']} {c['VARIANT']}"


def axes_for(problem: Problem, machine: Machine) -> dict[str, list[Any]]:
    """The values of each key, in order: neighbours in a list are neighbours in the search."""
    described = machine.capability >= (9, 0) and problem.k % 8 == 0 == problem.n % 8 and problem.k > 0
    return {
        "BLOCK_M": _sides(problem.m), "BLOCK_N": _sides(problem.n), "BLOCK_K": [32, 64, 128],
        "GROUP_M": [1, 4, 8, 16], "STAGES": [2, 3, 4], "WARPS": [4, 8, 16],
        "VARIANT": ["pointers", "descriptors", "persistent"] if described else ["pointers"],
    }  # fmt: skip


def _sides(length: int) -> list[int]:
    """Three sides of a tile: up to the first that covers the matrix."""
    covering = next((i for i, side in enumerate(SIDES) if side >= length), len(SIDES) - 1)
    return list(SIDES[max(0, covering - 2) : max(3, covering + 1)])


def predict(configuration: Configuration, machine: Machine) -> Resources:
    """What the compiler is expected to need: every stage holds a block of a and one of b; the sums lie in registers.

    From capability 9.0 on the tensor cores read the blocks from shared memory. Before, fragments of them pass through
    registers as well, and the stage that is being multiplied needs no buffer of its own; capability 7.5 has no
    asynchronous copies, hence one stage. The answer crosses shared memory on its way out, in the place of the stages.
    """
    c = configuration
    block = (c["BLOCK_M"] + c["BLOCK_N"]) * c["BLOCK_K"] * ITEM_BYTES
    sums = c["BLOCK_M"] * c["BLOCK_N"] // (WARP * c["WARPS"])
    from_shared = machine.capability[0] in (9, 10)
    stages = c["STAGES"] if from_shared else c["STAGES"] - 1 if machine.capability >= (8, 0) else 1
    shared = max(stages * block, c["BLOCK_M"] * c["BLOCK_N"] * ITEM_BYTES)
    return Resources(sums + sums // 4 + (32 if from_shared else 64), shared)


def too_large(configuration: Configuration, machine: Machine) -> str:
    """Why this machine cannot hold a configuration, with the arithmetic; empty if it can."""
    needed, there = predict(configuration, machine), machine.shared_bytes - SYSTEM_SHARED_BYTES
    if needed.shared_bytes > there:
        return f"needs {needed.shared_bytes:,} bytes of shared memory a block, {there:,} are there"
    most = min(MOST_REGISTERS, REGISTERS_PER_SM // (WARP * configuration["WARPS"]))
    if needed.registers > most:
        return f"needs about {needed.registers} registers a thread, {most} are there: the rest would spill"
    return ""


@dataclass(frozen=True)
class Space:
    """`valid`: name -> configuration, of all that was not pruned. `pruned`: name -> why."""

    axes: dict[str, list[Any]]
    valid: dict[str, Configuration]
    pruned: dict[str, str]

    @classmethod
    def of(cls, problem: Problem, machine: Machine, without: dict[str, list[Any]] | None = None) -> "Space":
        """`without`: values of axes that are left out, as ADDED."""
        left_out = without or {}
        axes = {
            axis: [value for value in values if value not in left_out.get(axis, ())]
            for axis, values in axes_for(problem, machine).items()
        }
        every = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        reasons = {name_of(each): too_large(each, machine) for each in every}
        valid = {name_of(each): each for each in every if not reasons[name_of(each)]}
        return cls(axes, valid, {name: why for name, why in reasons.items() if why})

    def steps(self, one: Configuration, other: Configuration) -> int:
        """How many steps along the axes lie between two configurations; another variant is one."""
        return sum(self._steps(axis, one[axis], other[axis]) for axis in self.axes)

    def _steps(self, axis: str, one: Any, other: Any) -> int:
        if axis == "VARIANT":
            return int(one != other)
        values = self.axes[axis]
        place = [min(range(len(values)), key=lambda i: abs(values[i] - value)) for value in (one, other)]
        return abs(place[0] - place[1])

    def nearest(self, wanted: Configuration) -> Configuration:
        """The valid configuration that is fewest steps away."""
        return min(self.valid.values(), key=lambda each: self.steps(each, wanted))

    def problem_with(self, proposed: Any) -> str:
        """What is wrong with a proposed configuration; empty if nothing."""
        if not isinstance(proposed, dict) or proposed.keys() != self.axes.keys():
            return f"must be an object with exactly the keys {', '.join(self.axes)}"
        for key, values in self.axes.items():
            if type(proposed[key]) is not type(values[0]) or proposed[key] not in values:
                return f"{key} must be one of {', '.join(map(str, values))}"
        return self.pruned.get(name_of(proposed), "")
