"""Which kernels a version launches, and with what: found by running it on tensors without memory, launching nothing.

Triton's launcher and CuPy's kernels are replaced by recorders, and so is what asks for a GPU on the way there: drivers,
streams, properties. An autotuner takes its first configuration.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import torch

from common.isolation.process import one_line
from common.pairs.contract import OneLine
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

    def key(self) -> Any:
        """Equal for launches of the same machine code, or nearly: of other sizes of the same tensors."""
        return self.name, tuple(map(_kind, self.arguments)), tuple((k, _kind(v)) for k, v in self.options.items())


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

    def key(self) -> Any:
        return self


Launch = TritonLaunch | CudaLaunch


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
    return list({launch.key(): launch for launch in found}.values())


@contextmanager
def recorded_launches(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    """Inside, launches are kept instead of made, as on a machine that need not be here."""
    with _torch_without_gpu(machine), _triton(keep, machine), _cupy(keep, machine):
        yield


@contextmanager
def _torch_without_gpu(machine: Machine) -> Iterator[None]:
    """What of torch.cuda a version may ask for: streams, events and graphs that do nothing, a machine's properties."""
    properties = SimpleNamespace(
        name=machine.name, multi_processor_count=machine.sms, major=machine.capability[0], minor=machine.capability[1],
        shared_memory_per_multiprocessor=machine.shared_bytes, L2_cache_size=machine.l2_bytes,
        shared_memory_per_block_optin=machine.shared_bytes - SYSTEM_SHARED_BYTES,
    )  # fmt: skip
    names = ("Stream", "Event", "CUDAGraph", "stream", "graph", "current_stream", "synchronize")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(patch.object(torch.cuda, name, MagicMock()))
        for name, value in {
            "is_available": True, "current_device": 0, "device_count": 1, "get_device_properties": properties,
            "get_device_capability": machine.capability,
        }.items():  # fmt: skip
            stack.enter_context(patch.object(torch.cuda, name, _always(value)))
        yield


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


@contextmanager
def _triton(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    try:
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction
    except ModuleNotFoundError:  # a version that needs it says so
        yield
        return

    def record(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        keep(TritonLaunch(self.__name__, self, arguments, options, grid))
        return MagicMock()  # in place of the compiled kernel, which some keep to launch it again

    def first_configuration(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.fn.run(*arguments, **options, **self.configs[0].all_kwargs())

    with (
        machine.as_tritons_driver(),
        patch.object(JITFunction, "run", record),
        patch.object(Autotuner, "run", first_configuration),
    ):
        yield


@contextmanager
def _cupy(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    """CuPy's arrays have an address that nobody reads; its kernels, and what would fill arrays, are stand-ins."""
    try:
        import cupy
    except ModuleNotFoundError:
        yield
        return
    properties = {
        "multiProcessorCount": machine.sms, "l2CacheSize": machine.l2_bytes, "name": machine.name.encode(),
        "sharedMemPerMultiprocessor": machine.shared_bytes,
    }  # fmt: skip

    class RawKernel:
        def __init__(self, code: str, name: str, options: tuple[str, ...] = (), **_: Any) -> None:
            self.code, self.name, self.options = code, name, options

        def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
            threads = 1
            for side in block:
                threads *= side
            keep(CudaLaunch(self.name, self.code, tuple(self.options), threads, shared_mem, (grid, block), args))

    def nowhere(size: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(1 << 20, max(size, 1), None, 0), 0)

    def shaped(shape: Any, *_: Any, dtype: Any = float, **__: Any) -> Any:
        return cupy.empty(shape, dtype=dtype)

    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(nowhere)
    try:
        with ExitStack() as stack:
            stand_ins = {
                (cupy, "RawKernel"): RawKernel, (cupy, "zeros"): shaped, (cupy, "full"): shaped,
                (cupy, "zeros_like"): cupy.empty_like, (cupy.cuda.runtime, "getDevice"): _always(0),
                (cupy.cuda.runtime, "getDeviceProperties"): _always(properties),
                (cupy, "random"): _Random(cupy.empty),
            }  # fmt: skip
            for (home, name), value in stand_ins.items():
                stack.enter_context(patch.object(home, name, value))
            yield
    finally:
        cupy.cuda.set_allocator(before)


class _Random:
    """cupy.random, as far as the pairs of the course use it: arrays of the right shape and type."""

    def __init__(self, empty: Callable[..., Any]) -> None:
        self._empty = empty

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = (), dtype: Any = float) -> Any:
        return self._empty(size, dtype=dtype)

    def standard_normal(self, size: Any = (), dtype: Any = float) -> Any:
        return self._empty(size, dtype=dtype)

    def randint(self, low: int, high: int | None = None, size: Any = (), dtype: Any = int) -> Any:
        return self._empty(size, dtype=dtype)
