"""What a program of torch's operations does with a device, counted without one: waits, copies, operations, memory.

Two calls are followed. In one the tensors have no memory (the device "meta" stands for a GPU): there the host and the
device are different places, and one that asks the other is seen. In the other all is computed on the CPU.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import optimizer

from common.isolation.pipe import Report
from common.pairs.eager_mode import EagerMode, tensors_in, with_own_memory
from common.pairs.pair import load

DEVICE, HOST = "meta", "cpu"
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"  # parts of a call; the first is all else
NUMBER = "for a number"
ANY = 1.0  # the number that the host gets of a tensor without memory
aten = torch.ops.aten


@dataclass
class Work:
    """Of a call.

    `waits`: for what the host waits -> times, copies to the device left out: whether one waits depends on its memory.
    `copies`: what is copied to the device -> times. `operations`: part -> name -> times. `unused`: what was saved for a
    backward pass and never read -> bytes. `peak_bytes`: the most bytes of its own tensors that exist at a time;
    `at_peak`: what they are then -> bytes, and how many.
    """

    waits: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    operations: dict[str, Counter[str]] = field(
        default_factory=lambda: {FORWARD: Counter(), BACKWARD: Counter(), OPTIMIZER: Counter()}
    )
    unused: Counter[str] = field(default_factory=Counter)
    peak_bytes: int = 0
    at_peak: dict[str, tuple[int, int]] = field(default_factory=dict)


def tensor_text(tensor: torch.Tensor) -> str:
    """`float32 [16, 8]`"""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _in_parts(mode: EagerMode, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The answer of an operation that is made of others, which the mode then sees, or NotImplemented.

    Autograd calls these by itself; in inference mode nobody does.
    """
    if not torch.is_inference_mode_enabled():
        return NotImplemented
    with mode:
        return func.decompose(*args, **kwargs)


class Asked(EagerMode):
    """With tensors of the device that have no memory: who waits for whom."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if (parts := _in_parts(self, func, args, kwargs)) is not NotImplemented:
            return parts
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if func is aten._local_scalar_dense.default and first is not None and first.device.type == DEVICE:
            self._work.waits[NUMBER] += 1
            return int(ANY) if not first.is_floating_point() else ANY
        if func in (aten._pin_memory.default, aten.pin_memory.default):
            return first
        if func.__name__.startswith("_fused_"):  # an optimizer in one kernel: there is none without memory
            return None
        if func is aten._to_copy.default and first is not None:
            return self._copied(func, first, args, kwargs)
        if func is aten.copy_.default and first is not None and first.device != args[1].device:
            self.note(args[1], first.device.type)
            return first
        return func(*args, **kwargs)

    def _copied(self, func: Any, source: torch.Tensor, args: Any, kwargs: dict[str, Any]) -> Any:
        target = torch.device(kwargs.get("device") or source.device).type
        if target == source.device.type:
            return func(*args, **kwargs)
        self.note(source, target)
        like = {name: kwargs[name] for name in ("dtype", "device") if kwargs.get(name) is not None}
        return torch.zeros_like(source, **like)

    def note(self, source: torch.Tensor, target: str) -> None:
        """A copy between the host and the device."""
        if target == DEVICE:
            self._work.copies[tensor_text(source)] += 1
        else:
            self._work.waits[f"for a copy of {tensor_text(source)}"] += 1


class Done(EagerMode):
    """With tensors that have memory: operations by the part of the call, and the bytes that exist at a time."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work, self._living = work, dict[Any, tuple[int, str]]()
        self.in_optimizer = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (parts := _in_parts(self, func, args, kwargs or {})) is not NotImplemented:
            return parts
        out = func(*args, **(kwargs or {}))
        new = with_own_memory(tensors_in(out), tensors_in((args, kwargs)))
        if (new or func._schema.is_mutable) and not func.__name__.startswith(
            ("empty", "new_empty", "_record_function")
        ):
            part = OPTIMIZER if self.in_optimizer else BACKWARD if torch._C._current_graph_task_id() != -1 else FORWARD
            self._work.operations[part][func.__name__.partition(".")[0]] += 1
        for t in new:
            self._living[StorageWeakRef(t.untyped_storage())] = t.untyped_storage().nbytes(), tensor_text(t)
        self._look()
        return out

    def _look(self) -> None:
        if sum(size for size, _ in self._living.values()) <= self._work.peak_bytes:
            return
        self._living = {memory: of for memory, of in self._living.items() if not memory.expired()}
        if (peak := sum(size for size, _ in self._living.values())) > self._work.peak_bytes:
            sizes, counts = Counter[str](), Counter[str]()
            for size, text in self._living.values():
                sizes[text] += size
                counts[text] += 1
            self._work.peak_bytes = peak
            self._work.at_peak = {text: (size, counts[text]) for text, size in sizes.most_common()}


def works_of(paths: Sequence[Path], size: dict[str, Any], with_host: bool, report: Report) -> list[Work]:
    """In a child process: what a call of each version does at a size. `with_host`: also waits and copies."""
    torch.set_num_threads(1)  # arrays are small, and on a busy machine threads wait for each other
    works = []
    for path in paths:
        report(path.stem, 0.0)
        works.append(_work_of(path, size, with_host))
    return works


def _work_of(path: Path, size: dict[str, Any], with_host: bool) -> Work:
    work, module = Work(), load(path)
    if with_host:
        with _as_a_gpu_has_it(), Asked(work) as asked, _noted_tensors(asked):
            module.run(**module.inputs(**size, device=DEVICE))
    torch.manual_seed(0)
    inputs = module.inputs(**size, device=HOST)
    mode, saved = Done(work), list[list[Any]]()

    def pack(tensor: torch.Tensor) -> Any:
        saved.append([tensor_text(tensor), tensor.nbytes, False])
        return tensor, saved[-1]

    def unpack(packed: Any) -> torch.Tensor:
        tensor, entry = packed
        entry[2] = True
        return tensor

    with _as_a_gpu_has_it(), _marked_steps(mode), saved_tensors_hooks(pack, unpack), mode:
        module.run(**inputs)
    for text, nbytes, is_used in saved:
        work.unused[text] += 0 if is_used else nbytes
    return work


@contextmanager
def _as_a_gpu_has_it() -> Iterator[None]:
    """Inside, an optimizer chooses what it would choose on a GPU, and has all that it would have there."""
    both = lambda: ["cuda", HOST, DEVICE]  # noqa: E731
    foreach, fused = "_get_foreach_kernels_supported_devices", "_get_fused_kernels_supported_devices"
    with patch.object(optimizer, foreach, both), patch.object(optimizer, fused, both):
        yield


@contextmanager
def _noted_tensors(asked: Asked) -> Iterator[None]:
    """Inside, torch.tensor(values, device=...) is a copy: no mode hears of it."""

    def noted(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def made(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            out = make(data, *args, **kwargs)
            if out.device.type == DEVICE and not isinstance(data, torch.Tensor):
                asked.note(out, DEVICE)
            return out

        return made

    with patch.object(torch, "tensor", noted(torch.tensor)), patch.object(torch, "as_tensor", noted(torch.as_tensor)):
        yield


@contextmanager
def _marked_steps(mode: Done) -> Iterator[None]:
    """Inside, the mode knows when an optimizer takes a step."""

    def mark(value: bool) -> Callable[..., None]:
        return lambda *_: setattr(mode, "in_optimizer", value)

    with ExitStack() as stack:
        stack.callback(optimizer.register_optimizer_step_pre_hook(mark(True)).remove)
        stack.callback(optimizer.register_optimizer_step_post_hook(mark(False)).remove)
        yield
