"""Whether a version's addresses stay in its arrays where these have more than 2^31 elements: seen without memory.

The last and the middle program of each grid run on arrays without memory, which lie far from each other. An offset
that has overflowed 32 bits then lies in none of them. Every load returns 0.
"""

import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest.mock import patch

from common.checks.kernel_memory import cause_of, index_of
from common.traffic.data import SECTOR, Addresses, Kernel, Mask
from common.traffic.grid_sampling import AddressMap, Sampler, Scaled
from common.traffic.meter import Meter
from common.xray.occupancy import MACHINES, Machine

ELEMENTS = 2**31, 2**32  # of the largest array: at least, and less than
APART = 1 << 44  # bytes between arrays: more than 2^32 elements of any type
MOST_ACCESSES = 64  # of a program: a loop over so many elements does not end here
MOST_LAUNCHES = 16  # of a call


class _Overflow(Exception):
    """A program accesses what lies in no array; str() says which."""


class _EnoughSeen(Exception):
    """A program has shown enough."""


class _Bounds(Meter):
    """Counts nothing, but refuses an address outside of all arrays."""

    def __init__(self, addresses: AddressMap) -> None:
        super().__init__()
        self._addresses, self._accesses_left, self._program = addresses, 0, 0

    def start(self, program: int) -> None:
        self._program, self._accesses_left = program, MOST_ACCESSES

    def access(self, addresses: Addresses, mask: Mask, size: int, kind: str, tma: bool = False) -> None:
        active = addresses[mask]
        try:
            self._addresses.tensors_of(active.reshape(-1) // SECTOR)
        except IndexError:
            text = f"program {self._program:,} {kind}s outside of all its arrays: its offsets overflow 32 bits"
            raise _Overflow(text) from None
        self._accesses_left -= 1
        if not self._accesses_left:
            raise _EnoughSeen


class _LastPrograms(Sampler):
    """Runs the last program of each grid, and the one in its middle."""

    def __init__(self, bounds: _Bounds, addresses: AddressMap) -> None:
        super().__init__(bounds, random.Random(0))
        self.addresses, self._bounds, self._launches_left = addresses, bounds, MOST_LAUNCHES

    def run(self, kernel: Any, *args: Any, grid: Any, **options: Any) -> Scaled:
        self._launches_left -= 1
        if self._launches_left < 0:
            raise _EnoughSeen
        return super().run(kernel, *args, grid=grid, **options)

    def sample_launch(self, name: str, function: Any, values: dict[str, Any], shape: tuple[int, ...]) -> Scaled:
        from triton.runtime import interpreter

        programs = shape[0] * shape[1] * shape[2]
        scope = interpreter._patch_lang(function)
        interpreter.interpreter_builder.set_grid_dim(*shape)
        try:
            for number in {programs - 1, programs // 2} - {-1}:
                self._bounds.start(number)
                interpreter.interpreter_builder.set_grid_idx(*index_of(number, shape))
                try:
                    function(**values)
                except Exception as error:
                    if not cause_of(error, _EnoughSeen):
                        raise
        finally:
            scope.restore()
        return Kernel(name, launches=1), 0.0


def overflowed_offset(version: ModuleType, baseline: ModuleType, arguments: dict[str, Any]) -> str:
    """Which program of a version accesses what, at which size, where its offsets overflow 32 bits; empty if none does.

    `arguments`: of `inputs`, at an ordinary size. A size that the version refuses shows nothing.
    """
    from common.traffic.torch_hooks import MetaAsGpu
    from common.xray.capture import as_if_on

    machine: Machine = MACHINES["sm_90"]
    with as_if_on(machine), MetaAsGpu():
        for large in _large_sizes(baseline, arguments):
            changed = next(name for name in large if large[name] != arguments[name])
            try:
                _run_last_programs(version, large)
            except Exception as error:  # noqa: BLE001 (a version may refuse such a size in any way)
                if cause := cause_of(error, _Overflow):
                    return f"at {changed} = {large[changed]:,} {cause}"
    return ""


def _run_last_programs(module: ModuleType, arguments: dict[str, Any]) -> None:
    from common.traffic.torch_hooks import Operations
    from common.traffic.triton_hooks import Builder, interpreter_hooks

    def make_address(*_: Any) -> None:
        raise _EnoughSeen  # of an integer that was loaded, and every load returns 0

    inputs, addresses = module.inputs(**arguments, device="meta"), AddressMap(APART)
    bounds = _Bounds(addresses)
    hooks = interpreter_hooks(bounds, _LastPrograms(bounds, addresses).run, is_real=False)
    with hooks, Operations(Meter()), patch.object(Builder, "create_int_to_ptr", make_address):
        module.run(**inputs, **(module.setup(**inputs) if hasattr(module, "setup") else {}))


def _large_sizes(baseline: ModuleType, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """For each integer argument, the arguments with which the largest input has just over 2^31 elements."""
    usual = most_elements(baseline, arguments)
    for name, number in arguments.items():
        if type(number) is not int or not usual:
            continue
        for power in (1, 2, 3):  # of that argument, as which the elements may grow
            large = {**arguments, name: round(number * (1.3 * ELEMENTS[0] / usual) ** (1 / power))}
            if ELEMENTS[0] <= most_elements(baseline, large) < ELEMENTS[1]:
                yield large
                break


def most_elements(baseline: ModuleType, arguments: dict[str, Any]) -> int:
    """Of the largest input with these arguments; 0 if there can be none."""
    from torch.utils._pytree import tree_leaves

    try:
        inputs = baseline.inputs(**arguments, device="meta")
    except Exception:  # noqa: BLE001 (a size that cannot be)
        return 0
    return max((leaf.numel() for leaf in tree_leaves(inputs) if hasattr(leaf, "numel")), default=0)
