"""A file's kernels at all check sizes, where each address is looked at before anything is loaded or stored there.

Without that, a store beside an array may end the process that judges, and nothing says which store it was.
"""

import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from common.checks.poisoned_memory import filled_memory
from common.isolation import worker
from common.isolation.pipe import End
from common.learn.access_trace import Arrays, Made, apart, extent, outside
from common.learn.errors import explained, here, is_own
from common.learn.failure_text import sized
from common.pairs.interpreter import INTERPRETED
from common.pairs.pair import Pair, load
from common.traffic.data import Access, Addresses, Mask
from common.traffic.meter import Meter

DEADLINE_S = 60.0  # without a word: each size is one
MAKERS = ("empty", "zeros", "ones", "full")  # functions of torch, whose names may begin with `new_`


@dataclass(frozen=True)
class Looked:
    """`fatal`: the first access outside of its tensor, or a hang: the file cannot be judged.

    `error`: the first one that the file raises, with its line, and the `size` at which; an empty grid is one, too.
    """

    fatal: str = ""
    error: str = ""
    size: str = ""


NOTHING = Looked()


class Outside(Exception):
    """A program asks for an address outside of all tensors."""


def look(pair: Pair) -> Looked:
    """Of the pair's variant, in a child process. Of one that does not end well, the harness has more to say."""
    sizes: list[str] = []
    try:
        found: Looked = worker.call(
            _look,
            pair,
            environment=INTERPRETED,
            on_progress=lambda size, _: sizes.append(size),
            deadline_s=DEADLINE_S,
        )
    except worker.ChildFailed as death:
        hangs = sizes and death.end == End.HUNG
        return Looked(fatal=f"at size {sized(sizes[-1], pair)}: {death}: does each loop end?" if hangs else "")
    return found


def _look(pair: Pair, say: worker.Say) -> Looked:
    for number, size in enumerate(pair.check_sizes):
        say(size, number / len(pair.check_sizes))
        at = f"at size {sized(size, pair)}: "
        try:
            if problem := _run(pair, size):
                return Looked(error=f"{at}{problem}", size=size)
        except Exception as error:  # noqa: BLE001 (a reader's kernel may raise anything)
            if refused := _cause(error):
                return Looked(fatal=f"{at}{refused}")
            said = explained(error)
            return Looked(error=said and f"{at}{said}", size=size)
    return NOTHING


def _cause(error: BaseException | None) -> Outside | None:
    return error if error is None or isinstance(error, Outside) else _cause(error.__cause__)


def _run(pair: Pair, size: str) -> str:
    """Why no program runs at all; empty if one does. Raises Outside, below Triton's own error."""
    from common.traffic.triton_hooks import Builder, interpreter_hooks  # imports triton

    oracle, own = (load(version.path) for version in pair.versions)
    torch.manual_seed(0)
    inputs = oracle.inputs(**pair.sizes[size], device="cpu")
    inputs |= {name: apart(value) for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    grids: list[str] = []

    def set_grid_dim(self: Any, x: int, y: int, z: int) -> None:
        grids.append(f"({x},)" if y == z == 1 else f"({x}, {y})" if z == 1 else f"({x}, {y}, {z})")
        own_set(self, x, y, z)

    own_set, looking = Builder.set_grid_dim, _Looking(inputs, made := _Spaced())
    with made, filled_memory(), interpreter_hooks(looking), patch.object(Builder, "set_grid_dim", set_grid_dim):
        state = own.setup(**inputs) if hasattr(own, "setup") else {}
        own.run(**inputs, **state)
    return f"the grid is {grids[0]}: no program was launched" if grids and not looking.programs else ""


class _Spaced(Made):
    """Tensors that torch makes have nothing but NaN around them, as inputs have."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_function__(func, types, args, kwargs)
        is_made = getattr(func, "__name__", "").removeprefix("new_").startswith(MAKERS) and "out" not in (kwargs or {})
        if is_made and found.is_contiguous():
            self.tensors[-1] = found = apart(found)
        return found


class _Looking(Meter):
    """Counts nothing, but looks at each access before it is made."""

    def __init__(self, inputs: Mapping[str, Any], made: Made) -> None:
        super().__init__()
        self._inputs = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
        self._made, self.programs = made, 0

    def program(self) -> None:
        super().program()
        self.programs += 1

    def access(self, addresses: Addresses, mask: Mask, size: int, kind: str, tma: bool = False) -> None:
        """Raises Outside."""
        active = addresses[mask]
        tensors = [*self._inputs.values(), *self._made.tensors]
        if not active.size or _holds(tensors, int(active.min()), int(active.max()) + size):
            return
        access = Access(0, self._launch.kernel.programs - 1, kind, addresses, mask, size)
        named, line = _named(self._inputs, self._made.tensors), f" ({here()})"
        meant = _meant(named)
        if problem := outside([access], named, meant=meant, line=line):
            raise Outside(problem)


def _holds(tensors: Sequence[torch.Tensor], first: int, end: int) -> bool:
    """Whether one of them holds all these bytes: the usual case, which costs little."""
    return any(each.data_ptr() <= first and end <= each.data_ptr() + extent(each) for each in tensors)


def _named(inputs: Arrays, made: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """All tensors under the names that the functions have for them which are being called; of others, a number."""
    found = dict(inputs)
    for frame in _own_frames():
        found |= {name: each for name, each in frame.f_locals.items() if isinstance(each, torch.Tensor)}
    known = {each.data_ptr() for each in found.values()}
    others = {f"tensor {number} that torch made": each for number, each in enumerate(made)}
    return found | {name: each for name, each in others.items() if each.data_ptr() not in known}


def _meant(named: Arrays) -> str:
    """The tensor whose pointer is written in the line that runs now, if there is one such; else empty."""
    frame = next(_own_frames())
    words = re.findall(r"\w+", linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    values = (getattr(getattr(frame.f_locals.get(word), "handle", None), "data", None) for word in words)
    pointers = {int(each.item()) for each in values if each is not None and each.size == 1 and each.dtype == np.uint64}
    found = {each.data_ptr(): name for name, each in named.items() if each.data_ptr() in pointers}
    return next(iter(found.values())) if len(found) == 1 else ""


def _own_frames() -> Iterator[FrameType]:
    """Those of the reader's code, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if is_own(frame.f_code):
            yield frame
        frame = frame.f_back
