"""A file's kernels at all check sizes, where each address is looked at before anything is loaded or stored there.

Without that, a store beside an array may end the process that judges, and nothing says which store it was.
"""

import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from common.checks.kernel_memory import cause_of
from common.checks.poisoned_memory import filled_memory
from common.isolation import worker
from common.isolation.pipe import End
from common.learn.access_trace import Arrays, CreatedTensors, extent, out_of_bounds, with_margins
from common.learn.errors import explain_error, here, is_own
from common.learn.failure_text import size_text
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair, load
from common.traffic.data import Access, Addresses, Mask
from common.traffic.meter import Meter

DEADLINE_S = 60.0  # without a word: each size is one
MAKERS = ("empty", "zeros", "ones", "full")  # functions of torch, whose names may begin with `new_`


@dataclass(frozen=True)
class MemcheckResult:
    """`fatal`: the first access outside of its tensor, or a hang: the file cannot be judged.

    `error`: the first one that the file raises, with its line, and the `size` at which; an empty grid is one, too.
    """

    fatal: str = ""
    error: str = ""
    size: str = ""


NOTHING = MemcheckResult()


class OutOfBounds(Exception):
    """A program asks for an address outside of all tensors."""


def memcheck(pair: Pair) -> MemcheckResult:
    """Of the pair's variant, in a child process. Of one that does not end well, the harness has more to say."""
    sizes: list[str] = []
    try:
        result: MemcheckResult = worker.call(
            _memcheck,
            pair,
            environment=INTERPRETED,
            on_progress=lambda size, _: sizes.append(size),
            deadline_s=DEADLINE_S,
        )
    except worker.ChildFailed as death:
        hangs = sizes and death.end == End.HUNG
        return MemcheckResult(
            fatal=f"at size {size_text(sizes[-1], pair)}: {death}: does each loop end?" if hangs else ""
        )
    return result


def _memcheck(pair: Pair, report: worker.Report) -> MemcheckResult:
    for number, size in enumerate(pair.check_sizes):
        report(size, number / len(pair.check_sizes))
        at = f"at size {size_text(size, pair)}: "
        try:
            if problem := _run(pair, size):
                return MemcheckResult(error=f"{at}{problem}", size=size)
        except Exception as error:  # noqa: BLE001 (a reader's kernel may raise anything)
            if refused := cause_of(error, OutOfBounds):
                return MemcheckResult(fatal=f"{at}{refused}")
            explanation = explain_error(error)
            return MemcheckResult(error=explanation and f"{at}{explanation}", size=size)
    return NOTHING


def _run(pair: Pair, size: str) -> str:
    """Why no program runs at all; empty if one does. Raises OutOfBounds, below Triton's own error."""
    oracle, variant = (load(version.path) for version in pair.versions)
    torch.manual_seed(0)
    _, grids, programs = run_in_bounds(variant, oracle.inputs(**pair.sizes[size], device="cpu"))
    return f"the grid is {grids[0]}: no program was launched" if grids and not programs else ""


def run_in_bounds(variant: ModuleType, inputs: dict[str, Any]) -> tuple[Any, list[str], int]:
    """A version's answer, its grids, and how many programs ran. Raises OutOfBounds, below Triton's own error."""
    from common.traffic.triton_hooks import Builder, interpreter_hooks  # imports triton

    inputs |= {name: with_margins(value) for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    grids: list[str] = []

    def set_grid_dim(self: Any, x: int, y: int, z: int) -> None:
        grids.append(f"({x},)" if y == z == 1 else f"({x}, {y})" if z == 1 else f"({x}, {y}, {z})")
        own_set(self, x, y, z)

    own_set, meter = Builder.set_grid_dim, _BoundsMeter(inputs, made := _TensorsWithMargins())
    with made, filled_memory(), interpreter_hooks(meter), patch.object(Builder, "set_grid_dim", set_grid_dim):
        state = variant.setup(**inputs) if hasattr(variant, "setup") else {}
        answer = variant.run(**inputs, **state)
    return answer, grids, meter.programs


class _TensorsWithMargins(CreatedTensors):
    """Tensors that torch makes have nothing but NaN around them, as inputs have."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs)
        is_made = getattr(func, "__name__", "").removeprefix("new_").startswith(MAKERS) and "out" not in (kwargs or {})
        if is_made and result.is_contiguous():
            self.tensors[-1] = result = with_margins(result)
        return result


class _BoundsMeter(Meter):
    """Counts nothing, but looks at each access before it is made."""

    def __init__(self, inputs: Mapping[str, Any], made: CreatedTensors) -> None:
        super().__init__()
        self._inputs = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
        self._made, self.programs = made, 0

    def program(self) -> None:
        super().program()
        self.programs += 1

    def access(self, addresses: Addresses, mask: Mask, size: int, kind: str, tma: bool = False) -> None:
        """Raises OutOfBounds."""
        active = addresses[mask]
        tensors = [*self._inputs.values(), *self._made.tensors]
        if not active.size or _holds(tensors, int(active.min()), int(active.max()) + size):
            return
        access = Access(0, self._launch.kernel.programs - 1, kind, addresses, mask, size)
        named, line = _tensors_by_name(self._inputs, self._made.tensors), f" ({here()})"
        meant = _addressed_tensor(named)
        if problem := out_of_bounds([access], named, meant=meant, line=line):
            raise OutOfBounds(problem)


def _holds(tensors: Sequence[torch.Tensor], first: int, end: int) -> bool:
    """Whether one of them holds all these bytes: the usual case, which costs little."""
    return any(tensor.data_ptr() <= first and end <= tensor.data_ptr() + extent(tensor) for tensor in tensors)


def _tensors_by_name(inputs: Arrays, made: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """All tensors under the names that the functions have for them which are being called; of others, a number."""
    by_name = dict(inputs)
    for frame in _own_frames():
        by_name |= {name: value for name, value in frame.f_locals.items() if isinstance(value, torch.Tensor)}
    addresses = {tensor.data_ptr() for tensor in by_name.values()}
    others = {f"tensor {number} that torch made": tensor for number, tensor in enumerate(made)}
    return by_name | {name: tensor for name, tensor in others.items() if tensor.data_ptr() not in addresses}


def _addressed_tensor(named: Arrays) -> str:
    """The tensor whose pointer is written in the line that runs now, if there is one such; else empty."""
    frame = next(_own_frames())
    words = re.findall(r"\w+", linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    values = (getattr(getattr(frame.f_locals.get(word), "handle", None), "data", None) for word in words)
    pointers = {
        int(value.item()) for value in values if value is not None and value.size == 1 and value.dtype == np.uint64
    }
    names = {tensor.data_ptr(): name for name, tensor in named.items() if tensor.data_ptr() in pointers}
    return next(iter(names.values())) if len(names) == 1 else ""


def _own_frames() -> Iterator[FrameType]:
    """Those of the reader's code, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if is_own(frame.f_code):
            yield frame
        frame = frame.f_back
