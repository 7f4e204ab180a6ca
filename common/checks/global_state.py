"""Global state that could favour one arm: settings, and the functions that every arm and the clocks call.

What a version changes is noticed after each of its calls, put back, and named in its verdict.
"""

import inspect
import operator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

from common.checks.settings import SETTINGS

_TORCH = str(Path(torch.__file__).parent)
# Where clocks, operations and their methods live. (Methods that torch writes in C are looked up in TensorBase.)
_PLACES: dict[str, Any] = {
    place: resolve_name(place) for place in (
        "time", "builtins", "math", "torch", "torch.cuda", "torch.nn.functional", "torch.Tensor", "torch.cuda.Event",
        "torch.cuda.Stream", "torch.cuda.CUDAGraph", "torch.linalg", "torch.autograd", "numpy", "numpy.linalg",
    )
}  # fmt: skip


class Watch:
    """Global state as it was found, before any version was loaded."""

    def __init__(self) -> None:
        self._settings = {name: read() for name, (read, _) in SETTINGS.items()}
        self._functions = {place: dict(vars(home)) for place, home in _PLACES.items()}
        # NumPy's BLAS, OpenMP
        self._pools = [(pool, pool.get_num_threads()) for pool in ThreadpoolController().lib_controllers]

    def seeded(self) -> None:
        """The random seed is now the one that the harness has set."""
        self._settings["the random seed"] = torch.initial_seed()

    def restore(self) -> str:
        """What differs from what was found, put back; empty if nothing does."""
        replaced = self._replaced_functions()  # first: the others are read by means of these
        return ", ".join([*self._changed_settings(), *self._changed_pools(), *replaced])

    def _changed_settings(self) -> list[str]:
        found = []
        for name, (read, write) in SETTINGS.items():
            before, now = self._settings[name], read()
            if before is None:  # there was no CUDA then
                self._settings[name] = now
            elif now != before:
                found.append(f"{name} {_shown(before, now)}")
                write(before)
        return found

    def _changed_pools(self) -> list[str]:
        found = []
        for pool, before in self._pools:
            if (now := pool.get_num_threads()) != before:
                found.append(f"the threads of {pool.prefix} {before} -> {now}")
                pool.set_num_threads(before)
        return found

    def _replaced_functions(self) -> list[str]:
        """Public callables that are others than they were, and such as now hide a class's inherited ones."""
        found = []
        for place, home in _PLACES.items():
            before, now = self._functions[place], vars(home)
            if len(before) == len(now) and all(map(operator.is_, before.values(), now.values())):
                continue  # as nearly always: some 3,000 comparisons in a tenth of a millisecond
            for name, value in dict(now).items():
                if _is_replaced(home, name, before, value):
                    found.append(f"{place}.{name} was replaced")
                    setattr(home, name, before[name]) if name in before else delattr(home, name)
            self._functions[place] = dict(vars(home))
        return found


def _is_replaced(home: Any, name: str, before: dict[str, Any], value: Any) -> bool:
    private = name.startswith("_") and not name.endswith("__")  # __mul__ and its like are what `*` calls
    if private or not callable(value):
        return False
    if name not in before:
        return inspect.isclass(home)
    old = before[name]
    by_torch = getattr(getattr(value, "__code__", None), "co_filename", "").startswith(_TORCH)
    return value is not old and not (by_torch and inspect.unwrap(value) is old)  # torch._dynamo wraps manual_seed


def _shown(before: Any, now: Any) -> str:
    if isinstance(before, dict):
        return " ".join(sorted(name for name in before | now if before.get(name) != now.get(name)))
    return f"{before} -> {now}"
