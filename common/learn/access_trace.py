"""What the programs of a call do to arrays in whose neighbourhood there is nothing, and in lanes that are masked."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from common.learn.errors import here
from common.traffic import Access
from common.traffic.meter import Meter

APART = 1 << 14  # elements before and after each array: what lies beyond an array's end lies in no other one
WARPS = {1, 2, 4, 8, 16, 32}  # of a program: 32 x 32 threads are the most
Arrays = Mapping[str, torch.Tensor]
Stores = list[tuple[tuple[int, int, int], NDArray[np.float64]]]  # (launch, program, barriers before)
DOES = {"load": "loads", "store": "stores to", "atomic": "adds to"}


@dataclass(frozen=True)
class AccessTrace:
    """What a call does: all accesses of its programs, the torch operations beside them, lines with undefined lanes.

    `empty`: the addresses of memory that torch did not initialize.
    """

    accesses: list[Access]
    operations: list[str]
    undefined: dict[str, None]  # in order: loads that mask lanes and have no `other`
    stores: Stores = field(default_factory=list)
    warps: set[int] = field(default_factory=set)  # of its launches
    empty: set[int] = field(default_factory=set)


def no_launch(trace: AccessTrace) -> str:
    """Why a GPU could not launch the kernels, which the interpreter, without warps, does not notice; else empty."""
    odd = sorted(trace.warps - WARPS)
    return f"num_warps is {odd[0]}, and must be one of {', '.join(map(str, sorted(WARPS)))}" if odd else ""


def uses_undefined(is_wrong: Callable[[float], bool], trace: AccessTrace) -> str:
    """Whether a right answer needs a masked lane to be 0; empty if not. `is_wrong(value)`: with this value in it.

    NaN spoils a sum. A maximum takes no notice of NaN, and neither does a comparison: infinity spoils these.
    """
    if not trace.undefined or not any(is_wrong(value) for value in (math.nan, math.inf, -math.inf)):
        return ""
    where = " and ".join(trace.undefined)
    return f"{where}: without `other`, a masked lane holds any value, and the result depends on it"


class CreatedTensors(TorchFunctionMode):
    """While it is entered, all tensors that torch returns are kept in `tensors`: a kernel may look at nothing else.

    `empty`: the addresses of those that it does not initialize.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[torch.Tensor] = []
        self.empty: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, torch.Tensor)]
        self.tensors += made
        if getattr(func, "__name__", "").removeprefix("new_").startswith("empty"):
            self.empty.update(tensor.untyped_storage().data_ptr() for tensor in made)
        return result


def out_of_bounds(accesses: Sequence[Access], arrays: Arrays, meant: str = "", line: str = "") -> str:
    """The first lane that looks, without a mask, at what lies outside of all arrays; empty if there is none.

    `meant`: the array from whose address the program has started, where that is known. `line`: follows what is said.
    """
    for access in accesses:
        places = access.addresses[access.mask].reshape(-1).astype(np.int64)
        beside = {name: _distances(places, array) for name, array in arrays.items()}
        nearest = np.min([*beside.values()], axis=0)
        odd = np.nonzero(nearest)[0]
        if len(odd):
            name = meant or min(beside, key=lambda array_name: beside[array_name][odd[0]])
            array = arrays[name]
            if not meant and nearest[odd[0]] >= APART * array.element_size():
                far = f"an address far from {' and '.join(arrays)}"
                return f"program {access.program} {DOES[access.kind]} {far}{line}: is it another tensor's?"
            offset = (int(places[odd[0]]) - array.data_ptr()) // array.element_size()
            does = f"program {access.program} {DOES[access.kind]} {name} at offset {offset}"
            goes_on = (places[: odd[0]][-1:] == places[odd[0]] - array.element_size()).all()  # from the lane before
            asks = "what has to be masked" + ", or is a stride wrong" * (offset != array.numel() or not goes_on) + "?"
            if len(places) > 1 and (np.diff(np.sort(places)) == array.element_size() ** 2).all():
                asks = "do the offsets count bytes? They have to count elements"
            return f"{does}, but {name} has {array.numel()} elements{line}: {asks}"
    return ""


def racing_stores(stores: Stores, arrays: Arrays) -> str:
    """The first element to which two lanes of a program store different values, with no barrier between; else empty.

    The interpreter stores in the order of the source. On a GPU the lanes belong to two threads: either may be last.
    `stores`: of each an array [3, lanes] of addresses (exact up to 2^53), lanes and values, in the order of the source.
    """
    for (_, program, _), group in groupby(stores, itemgetter(0)):
        stored = np.concatenate([lanes for _, lanes in group], axis=1)
        stored = stored[:, np.argsort(stored[0], kind="stable")]
        (place, lane, value), (next_place, next_lane, last) = stored[:, :-1], stored[:, 1:]
        differs = ~np.isclose(value, last, rtol=0, atol=0, equal_nan=True)
        odd = np.nonzero((place == next_place) & (lane != next_lane) & differs)[0]
        if len(odd):
            first, at = odd[0], place[odd[:1]].astype(np.int64)
            name = min(arrays, key=lambda array_name: _distances(at, arrays[array_name])[0])
            offset = (int(at[0]) - arrays[name].data_ptr()) // arrays[name].element_size()
            problem = f"program {program} stores {value[first]:.5g} and {last[first]:.5g} to {name} at offset {offset}"
            return f"{problem}, in two lanes: on a GPU either may be the last. What has to be masked?"
    return ""


def _distances(places: NDArray[np.int64], array: torch.Tensor) -> NDArray[np.int64]:
    """Of each address, in bytes from the array's nearest end; 0 inside."""
    begin, end = array.data_ptr(), array.data_ptr() + extent(array)
    return np.maximum(np.maximum(begin - places, places - (end - 1)), 0)


def extent(array: torch.Tensor) -> int:
    """Bytes from its first element to the end of its last one: a view may have gaps, or one element many times."""
    steps = sum((size - 1) * stride for size, stride in zip(array.shape, array.stride(), strict=True))
    return (steps + 1) * array.element_size() if array.numel() else 0


def with_margins(array: torch.Tensor) -> torch.Tensor:
    """A contiguous copy in the middle of a larger array, which holds NaN (or the largest number) elsewhere."""
    kind = array.dtype
    fill = math.nan if kind.is_floating_point else torch.iinfo(kind).max if kind != torch.bool else True
    whole = torch.full((array.numel() + 2 * APART,), fill, dtype=kind)
    return whole[APART : APART + array.numel()].view(array.shape).copy_(array)


def trace_accesses(
    run: Callable[..., None], arrays: Arrays, is_real: bool = True, undefined: float | None = None
) -> AccessTrace:
    """What all programs do. Not `is_real`: nothing is loaded or stored. `undefined`: see traffic/triton_hooks.py."""
    from common.traffic.torch_hooks import Operations
    from common.traffic.triton_hooks import interpreter_hooks  # imports triton

    trace = AccessTrace([], [], {})
    meter = Meter(accesses=trace.accesses)

    def fill() -> float | None:
        trace.undefined[here()] = None
        return undefined

    with interpreter_hooks(meter, is_real=is_real, undefined=fill), Operations(meter), _launches(trace):
        run(*arrays.values())
    trace.operations.extend(kernel.name for kernel in meter.traffic.kernels if kernel.name.startswith("torch."))
    return trace


@contextmanager
def _launches(trace: AccessTrace) -> Iterator[None]:
    """Inside `interpreter_hooks`, keep launches' warps and what stores write: a store is traced before it is done."""
    from common.traffic.triton_hooks import Builder, JITFunction, interpreter  # imports triton

    original, barriers = Builder.create_masked_store, [0]

    def note_warps(original_run: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **options: Any) -> Any:
            trace.warps.add(options.get("num_warps", 4))  # 4: Triton's own choice
            return original_run(self, *args, **options)

        return run

    def store(self: Any, pointers: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        done, access = original(self, pointers, value, *args, **kwargs), trace.accesses[-1]
        values = np.broadcast_to(value.data, access.mask.shape)[access.mask]
        lanes = np.stack([access.addresses[access.mask], np.flatnonzero(access.mask), values]).astype(np.float64)
        trace.stores.append(((access.launch, access.program, barriers[0]), lanes))
        return done

    def barrier(self: Any) -> None:
        barriers[0] += 1

    with ExitStack() as stack:
        for kind in (JITFunction, interpreter.InterpretedFunction):
            stack.enter_context(patch.object(kind, "run", note_warps(kind.run)))
        stack.enter_context(patch.multiple(Builder, create_masked_store=store, create_barrier=barrier))
        yield
