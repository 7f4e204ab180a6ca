"""Conditions of a check: uninitialized memory holds NaN, and a GPU seems to have few SMs."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

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
