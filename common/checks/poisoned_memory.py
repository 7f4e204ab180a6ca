"""Conditions of a check: uninitialized memory holds NaN, a GPU seems to have few SMs, programs run in another order."""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from common.checks.kernel_memory import UNLIMITED, watched

NO_COMPILING = "fail_on_recompile"  # a stance of torch.compile: also a first compilation is an error
FEW_SMS = 3  # odd, and fewer than the rows or tiles of most check sizes


@contextmanager
def filled_memory() -> Iterator[None]:
    """Inside, uninitialized memory of torch and CuPy holds NaN (NumPy has no hook for it)."""
    torch.set_deterministic_debug_mode("warn")  # fills torch.empty; the better known function imports the compiler
    cupy: Any = sys.modules.get("cupy") if torch.cuda.is_initialized() else None
    allocator: Any = cupy.cuda.get_allocator() if cupy else None

    def allocate_nan(size: int) -> Any:
        memory = allocator(size)
        memory.memset(0xFF, size)  # all bits set is NaN in every floating type
        return memory

    with ExitStack() as afterwards:
        afterwards.callback(torch.set_deterministic_debug_mode, "default")
        if cupy:
            cupy.cuda.set_allocator(allocate_nan)
            afterwards.callback(cupy.cuda.set_allocator, allocator)
        yield


def would_compile(error: Exception) -> bool:
    """Whether torch.compile had to compile for filled memory: it takes this mode of torch for other code."""
    return isinstance(error, RuntimeError) and NO_COMPILING in str(error)


@contextmanager
def few_programs(on: bool = True) -> Iterator[None]:
    """Inside, if `on`, a GPU seems to have few SMs, so that persistent programs loop and meet remainders."""
    if not (on and torch.cuda.is_initialized()):
        yield
        return

    def properties(device: Any = None) -> Any:
        values = real_properties(device)
        public = {name: getattr(values, name) for name in dir(values) if not name.startswith("_")}
        return SimpleNamespace(**{**public, "multi_processor_count": FEW_SMS})

    real_properties, cupy = torch.cuda.get_device_properties, sys.modules.get("cupy")
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.cuda, "get_device_properties", properties))
        if cupy:
            runtime = cupy.cuda.runtime
            real_cupy_properties = runtime.getDeviceProperties
            few_cupy_properties = lambda device: {**real_cupy_properties(device), "multiProcessorCount": FEW_SMS}  # noqa: E731
            stack.enter_context(patch.object(runtime, "getDeviceProperties", few_cupy_properties))
        yield


@dataclass(frozen=True)
class Condition:
    """What holds during an untimed call. `order`, `undefined`, `races`, `most_programs`: see `watched`.

    `is_filled`: uninitialized memory holds NaN. `has_few_programs`: a GPU seems to have few SMs. `may_refuse`: an error
    says nothing of a version.
    """

    is_filled: bool = False
    has_few_programs: bool = False
    order: str = ""
    undefined: float | None = None
    races: bool = False
    most_programs: int = UNLIMITED
    may_refuse: bool = False

    @contextmanager
    def hold(self, has_kernel: bool) -> Iterator[Any]:
        """Inside it holds. Yields what watches the interpreter's memory."""
        with ExitStack() as stack:
            stack.enter_context(few_programs(has_kernel and self.has_few_programs))
            if self.is_filled:
                stack.enter_context(filled_memory())
                if "torch._dynamo" in sys.modules and not has_kernel:
                    stack.enter_context(torch.compiler.set_stance(NO_COMPILING))
            yield stack.enter_context(watched(self.order, self.undefined, self.races, self.most_programs))

    @property
    def in_order(self) -> "Condition":
        """The same, with programs in their own order."""
        return replace(self, order="")


USUAL = Condition()
FEW = Condition(has_few_programs=True, races=True)
FILLED = Condition(is_filled=True, order="reversed", undefined=math.nan, races=True)  # NaN spoils a sum, but no maximum
STRESS = Condition(has_few_programs=True, order="shuffled", undefined=math.inf)  # other values, the same addresses
