"""What a half may not do behind the clock's back: change inputs, leave state or threads, read unwritten memory."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from common.arrays import Tree, tensors

_backends: Any = torch.backends
_FLOAT32 = (_backends.cuda.matmul, _backends.cudnn.conv, _backends.mkldnn.matmul)
_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "the precision of float32 products": (lambda: _precisions(), lambda value: _set_precisions(value)),
    "torch.backends.cudnn.benchmark": (
        lambda: torch.backends.cudnn.benchmark,
        lambda value: setattr(torch.backends.cudnn, "benchmark", value),
    ),
    "the number of threads": (torch.get_num_threads, torch.set_num_threads),
    "the default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "the current stream": (
        lambda: torch.cuda.current_stream() if torch.cuda.is_initialized() else None,
        lambda value: torch.cuda.set_stream(value) if value is not None else None,
    ),
}


def _precisions() -> list[str]:
    """TF32 and its like, by the API that is readable whichever way they were set."""
    return [backend.fp32_precision.replace("none", "ieee") for backend in _FLOAT32]


def _set_precisions(values: list[str]) -> None:
    torch.set_float32_matmul_precision("highest")  # the older API's own memory of it
    for backend, value in zip(_FLOAT32, values, strict=True):
        backend.fp32_precision = value


def snapshot() -> dict[str, Any]:
    """Global state that could favour one arm."""
    return {name: read() for name, (read, _) in _STATE.items()}


def restore_changes(before: dict[str, Any]) -> str:
    """What differs from `before`, put back; empty if nothing does."""
    found = []
    for name, (read, write) in _STATE.items():
        value = read()
        if before[name] is not None and value != before[name]:
            found.append(f"{name} {before[name]} -> {value}")
            write(before[name])
    return ", ".join(found)


def new_threads(before: set[threading.Thread]) -> str:
    return ", ".join(sorted(thread.name for thread in set(threading.enumerate()) - before))


def is_output(path: str) -> bool:
    """Names of inputs that start with `out` may be written."""
    return path.startswith("out")


def changed_input(now: Tree, pristine: Tree) -> str:
    """The first input that is no longer what it was, bit for bit (NaN equals NaN); empty if there is none."""
    for (path, mine), (_, then) in zip(tensors(now), tensors(pristine), strict=True):
        if not is_output(path) and not bool(((mine == then) | ((mine != mine) & (then != then))).all()):
            return path
    return ""


def poison_outputs(inputs: Tree) -> None:
    """Fill `out*` so that an earlier arm's answer is not there to be returned."""
    for path, tensor in tensors(inputs):
        if is_output(path):
            tensor.fill_(float("nan") if tensor.is_floating_point() else -1 if tensor.dtype != torch.bool else True)


@contextmanager
def filled_memory(on: bool = True) -> Iterator[None]:
    """Uninitialized memory of torch and CuPy is NaN inside, if `on` (NumPy offers no hook)."""
    if not on:
        yield
        return
    torch.use_deterministic_algorithms(
        True, warn_only=True
    )  # fills torch.empty: fill_uninitialized_memory is on by default
    cupy: Any = sys.modules.get("cupy") if torch.cuda.is_initialized() else None
    plain: Any = cupy.cuda.get_allocator() if cupy else None

    def filled(size: int) -> Any:
        memory = plain(size)
        memory.memset(0xFF, size)  # all bits set is a NaN in every floating type
        return memory

    if cupy:
        cupy.cuda.set_allocator(filled)
    try:
        yield
    finally:
        if cupy:
            cupy.cuda.set_allocator(plain)
        torch.use_deterministic_algorithms(False)
