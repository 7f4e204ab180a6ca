"""Which kernels a version launches, and with what: found by running it on tensors without memory, launching nothing.

Triton's launcher and CuPy's kernels are replaced by recorders, and so is what asks for a GPU on the way there: drivers,
streams, properties. An autotuner takes its first configuration.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import torch

from common.isolation.process import one_line
from common.pairs.one_line import OneLine
from common.pairs.pair import load
from common.xray.occupancy import SYSTEM_SHARED_BYTES, Machine


class CannotShow(OneLine):
    """A version whose launches cannot be found without a GPU; str() says why."""


@dataclass(frozen=True)
class TritonLaunch:
    """A launch of a Triton kernel, from which Triton compiles what it would on a GPU."""

    name: str
    kernel: Any  # triton.JITFunction
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    grid: Any


@dataclass(frozen=True)
class CudaLaunch:
    """A launch of a CUDA C++ kernel: threads of a block, bytes of shared memory beyond the kernel's own arrays."""

    name: str
    source: str
    options: tuple[str, ...]
    threads: int
    dynamic_shared_bytes: int
    grid: Any = field(default=None, compare=False)
    arguments: Any = field(default=None, compare=False)


Launch = TritonLaunch | CudaLaunch


def _key(launch: Launch) -> Any:
    """Equal for launches of the same machine code, or nearly: of other sizes of the same tensors."""
    if isinstance(launch, CudaLaunch):
        return launch
    return launch.name, tuple(map(_kind, launch.arguments)), tuple((k, _kind(v)) for k, v in launch.options.items())


def _kind(value: Any) -> Any:
    if hasattr(value, "block_shape"):  # a tensor descriptor, which has no hash
        return _kind(value.base), tuple(value.block_shape)
    return value.dtype if hasattr(value, "dtype") else value


def launches(path: Path, size: dict[str, Any], machine: Machine) -> list[Launch]:
    """The different launches of one set-up and one call of a version, in order. Raises CannotShow."""
    found: list[Launch] = []
    try:
        with recorded_launches(found.append, machine):
            version = load(path)
            inputs = version.inputs(**size, device="meta")
            state = version.setup(**inputs) if hasattr(version, "setup") else {}
            version.run(**inputs, **state)
    except Exception as error:  # noqa: BLE001 (whatever a version needs of a GPU that is not there)
        raise CannotShow(f"{path.name}: cannot be run without a GPU: {one_line(error)}") from None
    return list({_key(launch): launch for launch in found}.values())


@contextmanager
def recorded_launches(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    """Inside, launches are kept instead of made, as on a machine that need not be here."""
    with as_if_on(machine), ExitStack() as stack:
        for package, stand_ins in {"triton": _triton, "cupy": _cupy}.items():
            if find_spec(package):  # else a version that needs it says so
                stack.enter_context(stand_ins(keep, machine))
        yield


def as_if_on(machine: Machine) -> Any:
    """What of torch.cuda a version may ask for: streams, events and graphs that do nothing, a machine's properties."""
    properties = SimpleNamespace(
        name=machine.name, multi_processor_count=machine.sms, major=machine.capability[0], minor=machine.capability[1],
        shared_memory_per_multiprocessor=machine.shared_bytes, L2_cache_size=machine.l2_bytes,
        shared_memory_per_block_optin=machine.shared_bytes - SYSTEM_SHARED_BYTES,
    )  # fmt: skip
    answers = {
        "is_available": True, "current_device": 0, "device_count": 1, "get_device_properties": properties,
        "get_device_capability": machine.capability,
    }  # fmt: skip
    idle = ("Stream", "Event", "CUDAGraph", "stream", "graph", "current_stream", "synchronize")
    stand_ins = {name: MagicMock() for name in idle} | {name: _always(value) for name, value in answers.items()}
    return patch.multiple(torch.cuda, **stand_ins)


def _always(value: Any) -> Any:
    return lambda *_, **__: value


@contextmanager
def _triton(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    from triton.runtime.autotuner import Autotuner  # optional: not on macOS
    from triton.runtime.jit import JITFunction

    def record(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        keep(TritonLaunch(self.__name__, self, arguments, options, grid))
        return MagicMock()  # in place of the compiled kernel, which some keep to launch it again

    def first(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.fn.run(*arguments, **options, **self.configs[0].all_kwargs())

    with machine.as_tritons_driver(), patch.object(JITFunction, "run", record), patch.object(Autotuner, "run", first):
        yield


@contextmanager
def _cupy(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    """CuPy's arrays have an address that nobody reads; its kernels, and what would fill arrays, are stand-ins."""
    import cupy  # optional: not on macOS

    properties = {
        "multiProcessorCount": machine.sms, "l2CacheSize": machine.l2_bytes, "name": machine.name.encode(),
        "sharedMemPerMultiprocessor": machine.shared_bytes,
    }  # fmt: skip

    class RawKernel:
        def __init__(self, code: str, name: str, options: tuple[str, ...] = (), **_: Any) -> None:
            self.code, self.name, self.options = code, name, options

        def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
            threads = math.prod(block)
            keep(CudaLaunch(self.name, self.code, tuple(self.options), threads, shared_mem, (grid, block), args))

    def nowhere(size: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(1 << 20, max(size, 1), None, 0), 0)

    def shaped(shape: Any, *_: Any, dtype: Any = float, **__: Any) -> Any:
        return cupy.empty(shape, dtype=dtype)

    random = SimpleNamespace(  # as far as the pairs of the course use it
        uniform=lambda low=0.0, high=1.0, size=(), dtype=float: cupy.empty(size, dtype),
        standard_normal=lambda size=(), dtype=float: cupy.empty(size, dtype),
        randint=lambda low, high=None, size=(), dtype=int: cupy.empty(size, dtype),
    )
    arrays = {"RawKernel": RawKernel, "zeros": shaped, "full": shaped, "zeros_like": cupy.empty_like, "random": random}
    device = {"getDevice": _always(0), "getDeviceProperties": _always(properties)}
    allocator, runtime = cupy.cuda.using_allocator(nowhere), cupy.cuda.runtime
    with allocator, patch.multiple(cupy, **arrays), patch.multiple(runtime, **device):
        yield
