"""Triton's interpreter reports its memory operations, grids and barriers to the watch (kernel_memory.py)."""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from torch.utils._pytree import tree_leaves

from common.checks.kernel_memory import watch

Undefined = Callable[[], float | None] | None


def enforce() -> None:
    """From here on, for all kernels that this process interprets, if it has loaded Triton for that."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    interprets = interpreter and os.environ.get("TRITON_INTERPRET") == "1"
    if not interprets or isinstance(interpreter._interpreter, _WatchedMemory):  # the second: it does already
        return
    interpreter._interpreter = _WatchedMemory(interpreter._interpreter)
    executor, builder = interpreter.GridExecutor, interpreter.InterpreterBuilder
    executor._init_args_hst = _record_arguments(executor._init_args_hst)
    builder.set_grid_dim = _before(watch.start, builder.set_grid_dim)
    builder.create_barrier = _before(watch.wait_for_lanes, builder.create_barrier)
    builder.create_int_to_ptr = _before(watch.make_address, builder.create_int_to_ptr)
    builder.set_grid_idx = _in_order(builder.set_grid_idx)
    builder.create_masked_load = _with_undefined(builder.create_masked_load)
    builder.create_dot = _in_tf32(builder.create_dot)


def or_undefined(other: Any, mask: Any, dtype: Any, undefined: Undefined) -> Any:
    """`other` of a load, or without it what its masked lanes hold: of floats `undefined()`, of others the largest.

    Of a single lane nothing is known: Triton passes None for `other=0`, too. None from `undefined()`: zeros.
    """
    if other is not None or not undefined or mask.all() or mask.size == 1 or (value := undefined()) is None:
        return other
    interpreter: Any = sys.modules["triton.runtime.interpreter"]
    kind = interpreter._get_np_dtype(dtype)
    if str(dtype) == "bf16":  # kept as its bits: the upper half of a float32's
        fill: Any = np.float32(value).view(np.uint32) >> 16
    elif kind.kind == "f":
        fill = value
    else:
        fill = True if kind.kind == "b" else np.iinfo(kind).max  # in 8 bits of a float, NaN
    return interpreter.TensorHandle(np.full(mask.shape, fill, kind), dtype)


class _WatchedMemory:
    """The interpreter's memory: every operation is looked at before it is made."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        watch.access("loads", pointers, mask, dtype.itemsize)
        result = self._memory.load(pointers, mask, other, dtype)
        watch.read_again(pointers, result)
        return result

    def store(self, pointers: Any, value: Any, mask: Any) -> Any:
        watch.access("stores to", pointers, mask, value.dtype.itemsize, lambda: self._changes(pointers, value, mask))
        return self._memory.store(pointers, value, mask)

    def _changes(self, pointers: Any, value: Any, mask: Any) -> Any:
        """The lanes that store another value than is there."""
        values, is_active = np.broadcast_to(value, pointers.shape), np.broadcast_to(mask, pointers.shape)
        old = self._memory.load(pointers, is_active, np.ascontiguousarray(values), value.dtype)
        old_bits, new_bits = (np.ascontiguousarray(block).view(f"u{block.itemsize}") for block in (old, values))
        return (old_bits != new_bits).reshape(-1)

    def atomic_rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, order: Any) -> Any:
        if np.all(mask):
            watch.synchronize(pointers, order.name)
        watch.access("adds to", pointers, mask, value.dtype.itemsize)
        result = self._memory.atomic_rmw(operation, pointers, value, mask, order)
        watch.read_again(pointers, result)
        return result

    def atomic_cas(self, pointers: Any, expected: Any, value: Any, order: Any) -> Any:
        watch.synchronize(pointers, order.name)
        watch.access("adds to", pointers, True, value.dtype.itemsize)
        result = self._memory.atomic_cas(pointers, expected, value, order)
        watch.read_again(pointers, result)
        return result


def _record_arguments(convert: Any) -> Any:
    def record(self: Any, *arguments: Any) -> Any:
        args, kwargs = convert(self, *arguments)
        values = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        named = [(n, getattr(leaf, "base", leaf)) for n, value in values.items() for leaf in tree_leaves(value)]
        watch.launch([(name, leaf) for name, leaf in named if hasattr(leaf, "untyped_storage")])
        return args, kwargs

    return record


def _before(action: Any, original: Any) -> Any:
    def method(self: Any, *arguments: Any) -> Any:
        action(*arguments)
        return original(self, *arguments)

    return method


def _in_order(set_index: Any) -> Any:
    return lambda self, *index: set_index(self, *watch.start_program(index))


def _with_undefined(load: Any) -> Any:
    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *modifiers: Any, **named: Any) -> Any:
        if other is None and watch.undefined is not None:
            is_active = np.broadcast_to(np.asarray(mask.data) != 0, ptrs.data.shape)
            other = or_undefined(other, is_active, ptrs.get_element_ty(), lambda: watch.undefined)
        return load(self, ptrs, mask, other, *modifiers, **named)

    return create_masked_load


def _in_tf32(dot: Any) -> Any:
    """Products of float32 are rounded as a GPU's tensor cores do where a kernel does not ask for "ieee"."""

    def create_dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, *arguments: Any) -> Any:
        if str(a.dtype.scalar) == "fp32" and str(input_precision).upper().endswith("TF32"):
            interpreter: Any = sys.modules["triton.runtime.interpreter"]
            a, b = (interpreter.TensorHandle(_cut(operand.data), operand.dtype.scalar) for operand in (a, b))
        return dot(self, a, b, d, input_precision, *arguments)

    return create_dot


def _cut(x: Any) -> Any:
    """A float32 array without the lower 13 of its 23 bits of mantissa."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
