"""The kernels that a version launches, with their arguments: the version runs on tensors without memory.

Recorders replace Triton's launcher and CuPy's kernels. Stand-ins replace what asks for a GPU before a launch: drivers,
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
import torch.distributed as dist

from common.isolation.worker import one_line
from common.pairs.pair import load
from common.pairs.user_error import UserError
from common.xray.occupancy import SYSTEM_SHARED_BYTES, Machine


class CannotShow(UserError):
    """A version's launches cannot be found without a GPU; str() says why."""


class FaultyVersion(UserError):
    """A version would fail on a GPU, too; str() says why."""


@dataclass(frozen=True)
class TritonLaunch:
    """A launch of a Triton kernel, with what Triton needs to compile it as on a GPU."""

    name: str
    kernel: Any  # triton.JITFunction
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    grid: Any


@dataclass(frozen=True)
class CudaLaunch:
    """A launch of a CUDA C++ kernel: threads per block, bytes of dynamic shared memory."""

    name: str
    source: str
    options: tuple[str, ...]
    threads: int
    dynamic_shared_bytes: int
    grid: Any = field(default=None, compare=False)
    arguments: Any = field(default=None, compare=False)


Launch = TritonLaunch | CudaLaunch


def _key(launch: Launch) -> Any:
    """A key that is equal for launches of the same machine code, or of other sizes of the same tensors."""
    if isinstance(launch, CudaLaunch):
        return launch
    return launch.name, tuple(map(_kind, launch.arguments)), tuple((k, _kind(v)) for k, v in launch.options.items())


def _kind(value: Any) -> Any:
    if hasattr(value, "block_shape"):  # a tensor descriptor, which is not hashable
        return _kind(value.base), tuple(value.block_shape)
    return value.dtype if hasattr(value, "dtype") else value


def launches(path: Path, size: dict[str, Any], machine: Machine) -> list[Launch]:
    """The different launches of one setup and one call of a version, in order. Raises CannotShow, Faulty."""
    recorded: list[Launch] = []
    try:
        with recorded_launches(recorded.append, machine), as_if_cuda():
            version = load(path)
            inputs = version.inputs(**size, device="meta")
            state = version.setup(**inputs) if hasattr(version, "setup") else {}
            version.run(**inputs, **state)
    except NameError as error:
        raise FaultyVersion(f"{path.name}: {one_line(error)}") from None
    except Exception as error:  # noqa: BLE001 (any need for a missing GPU)
        raise CannotShow(f"{path.name}: cannot run without a GPU: {one_line(error)}") from None
    return list({_key(launch): launch for launch in recorded}.values())


@contextmanager
def recorded_launches(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    """Inside, launches are passed to `keep` instead of executed, as if on `machine`."""
    with as_if_on(machine), _as_if_one_of_two(), ExitStack() as stack:
        for package, stand_ins in {"triton": _triton, "cupy": _cupy}.items():
            if find_spec(package):  # otherwise a version that needs it says so
                stack.enter_context(stand_ins(keep, machine))
        yield


def as_if_on(machine: Machine) -> Any:
    """A stand-in for torch.cuda: streams, events and graphs without effect, and a machine's properties."""
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
    stand_ins = {name: MagicMock() for name in idle} | {name: _constant(value) for name, value in answers.items()}
    return patch.multiple(torch.cuda, **stand_ins)


def as_if_cuda() -> Any:
    """Inside, tensors without memory say that they are on a GPU: versions ask them."""
    return patch.object(torch.Tensor, "is_cuda", True)


@contextmanager
def _as_if_one_of_two() -> Iterator[None]:
    """Inside, this process seems to be rank 0 of two that have symmetric memory, if torch has it."""
    if not dist.is_available():
        yield
        return
    import torch.distributed._symmetric_memory as symmetric_memory

    def empty(shape: Any, dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype, device="meta")

    handle = SimpleNamespace(rank=0, world_size=2, barrier=_constant(None), get_buffer=lambda _, *like: empty(*like))
    memory = SimpleNamespace(empty_strided_p2p=lambda shape, strides, dtype, device: empty(shape, dtype))
    world = SimpleNamespace(WORLD=SimpleNamespace(group_name="of two"))
    with (
        patch.multiple(dist, get_rank=_constant(0), get_world_size=_constant(2), group=world),
        patch.multiple(symmetric_memory, _SymmetricMemory=memory, rendezvous=_constant(handle)),
    ):
        yield


def _constant(value: Any) -> Any:
    return lambda *_, **__: value


@contextmanager
def _triton(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    from triton.runtime.autotuner import Autotuner  # optional: not in macOS
    from triton.runtime.jit import JITFunction

    def record(self: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        keep(TritonLaunch(self.__name__, self, arguments, options, grid))
        return MagicMock()  # stands for the compiled kernel, which some versions keep and launch again

    def run_first_config(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.fn.run(*arguments, **options, **self.configs[0].all_kwargs())

    with (
        machine.as_tritons_driver(),
        patch.object(JITFunction, "run", record),
        patch.object(Autotuner, "run", run_first_config),
    ):
        yield


@contextmanager
def _cupy(keep: Callable[[Launch], None], machine: Machine) -> Iterator[None]:
    """CuPy with stand-ins for its kernels and its functions that fill arrays; its arrays have unused addresses."""
    import cupy  # optional: not in macOS

    properties = {
        "multiProcessorCount": machine.sms, "l2CacheSize": machine.l2_bytes, "name": machine.name.encode(),
        "sharedMemPerMultiprocessor": machine.shared_bytes,
    }  # fmt: skip

    class RawKernel:
        def __init__(self, code: str, name: str, options: tuple[str, ...] = (), **_: Any) -> None:
            self.code, self.name, self.options = code, name, options

        @property
        def kernel(self) -> Any:  # the compiled function, which takes the same by position, and a cooperative launch
            return lambda grid, block, args, shared, stream, _: self(grid, block, args, shared_mem=shared)

        def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0, stream: Any = None) -> None:
            threads = math.prod(block)
            keep(CudaLaunch(self.name, self.code, tuple(self.options), threads, shared_mem, (grid, block), args))

    def unused_address(size: int) -> Any:
        return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(1 << 20, max(size, 1), None, 0), 0)

    def new_array(shape: Any, *_: Any, dtype: Any = float, **__: Any) -> Any:
        return cupy.empty(shape, dtype=dtype)

    random = SimpleNamespace(  # only what the course's pairs use
        uniform=lambda low=0.0, high=1.0, size=(), dtype=float: cupy.empty(size, dtype),
        standard_normal=lambda size=(), dtype=float: cupy.empty(size, dtype),
        randint=lambda low, high=None, size=(), dtype=int: cupy.empty(size, dtype),
    )
    arrays = {
        "RawKernel": RawKernel,
        "zeros": new_array,
        "full": new_array,
        "zeros_like": cupy.empty_like,
        "copyto": _constant(None),
        "random": random,
    }
    device = {"getDevice": _constant(0), "getDeviceProperties": _constant(properties)}
    allocator, runtime = cupy.cuda.using_allocator(unused_address), cupy.cuda.runtime
    with allocator, patch.multiple(cupy, **arrays), patch.multiple(runtime, **device):
        yield
